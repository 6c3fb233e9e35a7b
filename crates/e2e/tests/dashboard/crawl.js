// Follows every link of the dashboard as its viewer, and tells what it found.
const [prefix, end] = [document.body.dataset.prefix, arguments[arguments.length - 1]];
const pages = new Set([`${prefix}/`]);
const calls = new Map();
const wrong = [];

const look = async (path) => {
  const answer = await fetch(path);
  const html = await answer.text();
  if (answer.status !== 200 || answer.redirected) wrong.push(`${path} was answered with ${answer.status} at ${answer.url}`);
  if (!(answer.headers.get("content-type") ?? "").startsWith("text/html")) return;
  const page = new DOMParser().parseFromString(html, "text/html");
  for (const link of page.querySelectorAll("a[href], link[href], script[src]")) {
    const to = new URL(link.getAttribute("href") ?? link.getAttribute("src"), location.origin + path);
    if (to.protocol === "data:") continue;
    if (to.origin !== location.origin || !to.pathname.startsWith(`${prefix}/`)) wrong.push(`${path} leads to ${to}`);
    else pages.add(to.pathname + to.search);
  }
  for (const one of page.querySelectorAll("[data-call]")) {
    const { call, url, body } = one.dataset;
    if (!url.startsWith(`${prefix}/`)) wrong.push(`${path} calls ${url}`);
    calls.set(`${call} ${url} ${body}`, { method: call, url, body: body ?? "{}", page: path });
  }
};

const walk = async () => {
  // The set grows while it is walked.
  for (const path of pages) await look(path);
  end({ pages: [...pages], calls: [...calls.values()], wrong });
};
walk().catch((error) => end({ pages: [], calls: [], wrong: [String(error)] }));
