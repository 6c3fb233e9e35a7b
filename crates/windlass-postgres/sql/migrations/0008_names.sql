-- Names must not have characters that are invisible or reorder text; the same ones as in `windlass-core/src/text.rs`.
CREATE OR REPLACE FUNCTION windlass.check_name(what text, name text) RETURNS void LANGUAGE plpgsql IMMUTABLE
AS $$
BEGIN
  IF name IS NULL OR name = '' THEN
    RAISE EXCEPTION '% must not be empty', what USING ERRCODE = 'invalid_parameter_value';
  ELSIF octet_length(name) > 128 THEN
    RAISE EXCEPTION '% %… is % bytes long; at most 128 are allowed', what, to_json(left(name, 40)), octet_length(name)
      USING ERRCODE = 'invalid_parameter_value';
  ELSIF name ~ '[\u0001-\u001f\u007f-\u009f]'
    OR name ~ '^[ \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]'
    OR name ~ '[ \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]$' THEN
    RAISE EXCEPTION '% % has control characters or spaces at its ends', what, to_json(left(name, 40))
      USING ERRCODE = 'invalid_parameter_value';
  -- Nearly every name is plain ASCII.
  ELSIF name ~ '[^ -~]' AND name ~ (
    '[\u00ad\u034f\u061c\u115f-\u1160\u17b4-\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f'
    '\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]'
  ) THEN
    RAISE EXCEPTION '% % has characters that are invisible or reorder text', what,
      quote_ident(regexp_replace(left(name, 40), '[^ -~]', '?', 'g'))
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
END
$$;
