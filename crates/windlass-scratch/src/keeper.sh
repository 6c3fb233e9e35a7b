# Keeps one server running while standard input is open, then ends it and removes its folder.
#
#   sh keeper.sh SIGNAL FOLDER COMMAND…    SIGNAL ends the server when the pipe closes
#   start          runs the command, answers its process id
#   stop SIGNAL    sends the signal, waits for the end, answers "stopped"
last_signal=$1
folder=$2
shift 2
server=

stop() {
  [ -n "$server" ] || return 0
  kill "-$1" "$server"
  # A server that was stopped with SIGSTOP would never receive the signal.
  kill -CONT "$server"
  wait "$server"
  server=
}

while read -r word signal; do
  case $word in
    start)
      "$@" </dev/null >>"$folder/log" 2>&1 &
      server=$!
      echo "$server"
      ;;
    stop)
      stop "$signal"
      echo stopped
      ;;
  esac
done

stop "$last_signal"
# A process may still write into the folder (initdb, a late backend): try again for a while.
tries=0
until rm -rf "$folder" || [ "$tries" -ge 50 ]; do
  tries=$((tries + 1))
  sleep 0.1
done
