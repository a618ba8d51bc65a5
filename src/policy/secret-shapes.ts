/**
 * What tokens look like: rules written from the issuers' public documentation (docs/adr/0006-token-shapes.md). Each begins with a
 * text that everybody may know, its anchor (`ghp_`); what follows it is the secret.
 *
 * A rule must not hit what builds and repositories are full of: object ids, UUIDs, integrity hashes, base64 of images.
 */

/** An anchor, then a run of characters of one kind. */
export interface TokenShape {
  /** Shown in the mark and in findings; kebab-case. */
  readonly rule: string;
  readonly anchors: readonly string[];
  /** Characters of the secret, written as in a character class of a regular expression. */
  readonly body: string;
  readonly minBytes: number;
  /** A longer run is something else. Only for bodies of word characters. */
  readonly maxBytes?: number;
  /** The anchor is short or an ordinary word: it counts only where no word goes on into it. */
  readonly isWeak?: true;
  /** What may stand between anchor and body, at most `MAX_GAP_BYTES` of it. */
  readonly gap?: string;
  /** A closer look at the run (one character a byte): where in it the secret begins, or -1. MUST take linear time. */
  accept?(run: string): number;
}

export const PRIVATE_KEY_RULE = "private-key";
export const URL_PASSWORD_RULE = "url-password";
/** Found by its value, not by its shape. */
export const CONFIGURED_RULE = "configured-secret";

const WORD = "A-Za-z0-9_";
const ALNUM = "A-Za-z0-9";
const URL_SAFE = "A-Za-z0-9_-";
const HEX = "0-9a-f";
const ASSIGNMENT = " \t\"'=:>,\\\\";

export const TOKEN_SHAPES: readonly TokenShape[] = [
  { rule: "github-token", anchors: ["ghp_", "gho_", "ghu_", "ghs_", "ghr_"], body: WORD, minBytes: 36 },
  { rule: "github-token", anchors: ["github_pat_"], body: WORD, minBytes: 50 },
  {
    rule: "gitlab-token",
    anchors: ["glpat-", "gldt-", "glrt-", "glcbt-", "glptt-", "glsoat-", "glagent-"],
    body: URL_SAFE,
    minBytes: 20,
    accept: mixed,
  },
  { rule: "anthropic-key", anchors: ["sk-ant-"], body: URL_SAFE, minBytes: 24, accept: mixed },
  {
    rule: "openai-key",
    anchors: ["sk-proj-", "sk-svcacct-", "sk-admin-"],
    body: URL_SAFE,
    minBytes: 24,
    accept: mixed,
  },
  { rule: "openrouter-key", anchors: ["sk-or-v1-"], body: HEX, minBytes: 48 },
  { rule: "api-key", anchors: ["sk-"], body: ALNUM, minBytes: 32, isWeak: true, accept: mixed },
  { rule: "google-key", anchors: ["AIza"], body: URL_SAFE, minBytes: 35, isWeak: true, accept: mixed },
  { rule: "google-token", anchors: ["ya29."], body: URL_SAFE, minBytes: 30, isWeak: true, accept: mixed },
  { rule: "google-token", anchors: ["GOCSPX-"], body: URL_SAFE, minBytes: 24 },
  {
    rule: "aws-key-id",
    anchors: ["AKIA", "ASIA"],
    body: "A-Z2-7",
    minBytes: 16,
    maxBytes: 16,
    isWeak: true,
  },
  {
    rule: "aws-secret-key",
    anchors: [
      "secret_access_key",
      "SECRET_ACCESS_KEY",
      "SecretAccessKey",
      "secretAccessKey",
      "secretaccesskey",
    ],
    gap: ASSIGNMENT,
    body: "A-Za-z0-9/+",
    minBytes: 40,
    accept: (run) => (run.length === 40 ? mixed(run) : -1),
  },
  {
    rule: "aws-session-token",
    anchors: ["session_token", "SESSION_TOKEN", "SessionToken", "sessionToken"],
    gap: ASSIGNMENT,
    body: "A-Za-z0-9/+=",
    minBytes: 100,
  },
  {
    rule: "slack-token",
    anchors: [
      "xoxb-",
      "xoxp-",
      "xoxa-",
      "xoxr-",
      "xoxs-",
      "xoxc-",
      "xoxd-",
      "xoxe-",
      "xoxe.xoxb-",
      "xoxe.xoxp-",
      "xapp-",
    ],
    body: "A-Za-z0-9%-",
    minBytes: 20,
    accept: mixed,
  },
  {
    rule: "slack-webhook",
    anchors: ["hooks.slack.com/services/"],
    body: "A-Za-z0-9/",
    minBytes: 30,
    accept: mixed,
  },
  { rule: "stripe-key", anchors: ["sk_live_", "rk_live_"], body: ALNUM, minBytes: 20 },
  { rule: "stripe-key", anchors: ["whsec_"], body: "A-Za-z0-9+/=", minBytes: 32, isWeak: true },
  { rule: "npm-token", anchors: ["npm_"], body: ALNUM, minBytes: 36 },
  { rule: "pypi-token", anchors: ["pypi-AgE"], body: URL_SAFE, minBytes: 50 },
  {
    rule: "azure-key",
    anchors: ["AccountKey=", "SharedAccessKey="],
    body: "A-Za-z0-9+/=",
    minBytes: 40,
    accept: mixed,
  },
  {
    rule: "azure-signature",
    anchors: ["sig="],
    body: "A-Za-z0-9%+/=",
    minBytes: 43,
    isWeak: true,
    accept: (run) => (/(=|%3[dD])$/.test(run.slice(-4)) ? mixed(run) : -1),
  },
  { rule: "digitalocean-token", anchors: ["dop_v1_", "doo_v1_", "dor_v1_"], body: HEX, minBytes: 64 },
  {
    rule: "sendgrid-key",
    anchors: ["SG."],
    body: "A-Za-z0-9_.-",
    minBytes: 66,
    isWeak: true,
    accept: (run) => (run[22] === "." && run.indexOf(".", 23) !== 23 ? mixed(run) : -1),
  },
  { rule: "twilio-key", anchors: ["SK"], body: HEX, minBytes: 32, maxBytes: 32, isWeak: true },
  { rule: "huggingface-token", anchors: ["hf_"], body: ALNUM, minBytes: 34, isWeak: true },
  { rule: "docker-hub-token", anchors: ["dckr_pat_", "dckr_oat_"], body: URL_SAFE, minBytes: 24 },
  {
    rule: "vault-token",
    anchors: ["hvs.", "hvb."],
    body: URL_SAFE,
    minBytes: 24,
    isWeak: true,
    accept: mixed,
  },
  { rule: "shopify-token", anchors: ["shpat_", "shpca_", "shppa_", "shpss_"], body: HEX, minBytes: 32 },
  { rule: "databricks-token", anchors: ["dapi"], body: HEX, minBytes: 32, maxBytes: 32, isWeak: true },
  { rule: "grafana-token", anchors: ["glsa_"], body: WORD, minBytes: 40 },
  { rule: "grafana-token", anchors: ["glc_"], body: "A-Za-z0-9+/=", minBytes: 60, isWeak: true },
  { rule: "groq-key", anchors: ["gsk_"], body: ALNUM, minBytes: 48, isWeak: true, accept: mixed },
  { rule: "xai-key", anchors: ["xai-"], body: ALNUM, minBytes: 60, isWeak: true, accept: mixed },
  { rule: "linear-key", anchors: ["lin_api_"], body: ALNUM, minBytes: 32 },
  { rule: "atlassian-token", anchors: ["ATATT3"], body: "A-Za-z0-9_=-", minBytes: 60, isWeak: true },
  { rule: "age-key", anchors: ["AGE-SECRET-KEY-1"], body: "A-Z0-9", minBytes: 50 },
  {
    rule: "jwt",
    anchors: ["eyJ"],
    body: "A-Za-z0-9_.-",
    minBytes: 30,
    isWeak: true,
    accept: acceptJwt,
  },
  {
    rule: "authorization",
    anchors: ["Bearer ", "bearer ", "BEARER "],
    body: "A-Za-z0-9._~+/=-",
    minBytes: 16,
    isWeak: true,
    accept: mixed,
  },
  {
    rule: "authorization",
    anchors: [
      "Authorization: Basic ",
      "Authorization: basic ",
      "authorization: Basic ",
      "authorization: basic ",
      "AUTHORIZATION: basic ",
      'Authorization":"Basic ',
      'Authorization": "Basic ',
      'authorization":"Basic ',
      'authorization": "Basic ',
    ],
    body: "A-Za-z0-9+/=",
    minBytes: 8,
  },
];

/** A password of a URL that nobody took for a secret: a variable, a placeholder, the word itself, the user's name again. */
export function isPlaceholderPassword(user: string, password: string): boolean {
  return (
    /^(?:[$%{<[(]|\*+$|\.+$|x+$)/i.test(password) ||
    password === user ||
    /^(?:pass(?:word|wd)?|pwd|secret|token|redacted|changeme|your[-_].*)$/i.test(password)
  );
}

/** A `://` that begins a reference to an image or package, whose `:tag@digest` looks like user information. */
export function isReferenceScheme(scheme: string): boolean {
  return /^(?:docker|docker-image|docker-daemon|oci|oci-layout|container|npm|pkg)$/i.test(scheme);
}

/** Random text of this length has digits and letters; prose, paths and words joined by dashes mostly have not. */
function mixed(run: string): number {
  return /[0-9]/.test(run) && /[A-Za-z]/.test(run) ? 0 : -1;
}

/** `header.claims.signature`, the first two base64 of JSON objects. Looks at every place in the run it could begin at. */
function acceptJwt(run: string): number {
  const parts = run.split(".");
  let offset = 0;
  for (let i = 0; i + 2 < parts.length; i += 1) {
    const [header = "", claims = "", signature = ""] = parts.slice(i, i + 3);
    // The anchor is no part of the run; a later header has its own.
    const isHeader = i === 0 ? header.length >= 8 : header.startsWith("eyJ") && header.length >= 11;
    if (isHeader && claims.startsWith("eyJ") && claims.length >= 8 && signature.length >= 8) return offset;
    offset += header.length + 1;
  }
  return -1;
}
