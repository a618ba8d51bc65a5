import { base64Text, latin1Text, utf8Bytes } from "../util/text-bytes.ts";

/** Shorter secrets would blot out ordinary words; they are left alone and reported. */
export const MIN_SECRET_CHARS = 6;

/** Lines of a multi-line secret are looked for one by one (tools indent and prefix them) when they are at least this long. */
const MIN_LINE_CHARS = 16;

/**
 * The byte strings that give a secret away: itself, as base64 at each of the three alignments it can have inside a longer text,
 * percent-encoded, JSON-escaped, and, where it has several lines, each long line by itself.
 *
 * LIMITATION: base64 wrapped into lines, hex, compression and encodings of encodings are not recognised. Redaction is the second
 * line; the first is that agents are never given a real secret (row P14).
 */
export function secretForms(secret: string): Uint8Array[] {
  const forms = new Map<string, Uint8Array>();
  const add = (form: string): void => {
    const bytes = utf8Bytes(form);
    if (bytes.length >= MIN_SECRET_CHARS) forms.set(latin1Text(bytes), bytes);
  };
  // A line end behind it (a file's last) is no part of the secret; what is said of the rest holds with and without it.
  const text = secret.toWellFormed().replace(/\r?\n$/, "");
  add(text);
  add(text.replace(/\r?\n/g, "\r\n"));
  for (const form of base64Forms(utf8Bytes(text))) add(form);
  const percent = encodeURIComponent(text);
  add(percent);
  add(percent.replace(/%20/g, "+"));
  add(percent.replace(/%[0-9A-F]{2}/g, (hex) => hex.toLowerCase()));
  add(JSON.stringify(text).slice(1, -1));
  const lines = text.split(/\r?\n/);
  if (lines.length > 1) {
    for (const line of lines) {
      const trimmed = line.trim();
      // "-----BEGIN … KEY-----" is no secret, and people search logs for it.
      if (trimmed.length >= MIN_LINE_CHARS && !trimmed.startsWith("-----")) add(trimmed);
    }
  }
  return [...forms.values()];
}

/** The characters of base64 text that depend on the secret alone, whatever stands before and behind it. */
function base64Forms(secret: Uint8Array): string[] {
  const forms: string[] = [];
  for (const before of [0, 1, 2]) {
    const padded = new Uint8Array(before + secret.length);
    padded.set(secret, before);
    const standard = base64Text(padded).slice(
      Math.ceil((before * 8) / 6),
      Math.floor((padded.length * 8) / 6),
    );
    forms.push(standard, standard.replaceAll("+", "-").replaceAll("/", "_"));
  }
  return forms;
}
