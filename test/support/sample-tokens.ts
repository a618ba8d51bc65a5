/** Tokens of the right shape that never were valid. Put together from pieces: scanners of repositories know these shapes too. */
const ALNUM = "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0fG3iJ6lM9oP2rS5uV8xY1zA4cD7eF0hI3kL6nO9qR2tU5wX8";

export function randomText(bytes: number, alphabet = ALNUM): string {
  return alphabet.repeat(Math.ceil(bytes / alphabet.length)).slice(0, bytes);
}

const hex = randomText(64, "0a1b2c3d4e5f60718293a4b5c6d7e8f9");
const upper = randomText(16, "A2B3C4D5E6F7QWRT");
const pem = (lines: number): string =>
  Array.from({ length: lines }, (_, i) => randomText(64).slice(i) + randomText(64).slice(0, i)).join("\n");

/** A private key file of so many lines. */
export function samplePrivateKey(lines = 8, kind = "RSA PRIVATE KEY"): string {
  return `-----BEGIN ${kind}-----\n${pem(lines)}\nq2Ff9w==\n-----END ${kind}-----`;
}

/** Rule, what stays, and what must go. */
export const SAMPLE_TOKENS: ReadonlyArray<readonly [rule: string, anchor: string, secret: string]> = [
  ["github-token", "ghp" + "_", randomText(36)],
  ["github-token", "ghs" + "_", randomText(36)],
  ["github-token", "github" + "_pat_", `${randomText(22)}_${randomText(59)}`],
  ["gitlab-token", "glpat" + "-", randomText(20)],
  ["anthropic-key", "sk-" + "ant-", `api03-${randomText(80)}-AA`],
  ["openai-key", "sk-" + "proj-", randomText(80)],
  ["api-key", "sk" + "-", randomText(48)],
  ["google-key", "AI" + "za", randomText(35)],
  ["aws-key-id", "AK" + "IA", upper],
  ["aws-key-id", "AS" + "IA", upper],
  ["aws-secret-key", "aws_secret_access" + "_key = ", `${randomText(20)}/${randomText(19)}`],
  ["aws-secret-key", `Secret${"Access"}Key": "`, randomText(40)],
  ["aws-session-token", "AWS_SESSION" + "_TOKEN=", `${randomText(150)}==`],
  ["slack-token", "xoxb" + "-", `123456789012-${randomText(24)}`],
  ["slack-webhook", "hooks.slack.com/" + "services/", `T00000000/B00000000/${randomText(24)}`],
  ["stripe-key", "sk_" + "live_", randomText(24)],
  ["stripe-key", "rk_" + "live_", randomText(24)],
  ["npm-token", "npm" + "_", randomText(36)],
  ["pypi-token", "pypi-" + "AgE", `IcHlwaS5vcmc${randomText(60)}`],
  ["azure-key", "Account" + "Key=", `${randomText(86)}==`],
  ["azure-signature", "sig" + "=", `${randomText(43)}%3D`],
  ["digitalocean-token", "dop_" + "v1_", hex],
  ["sendgrid-key", "SG" + ".", `${randomText(22)}.${randomText(43)}`],
  ["twilio-key", "S" + "K", hex.slice(0, 32)],
  ["huggingface-token", "hf" + "_", randomText(34)],
  ["vault-token", "hv" + "s.", randomText(90)],
  ["jwt", "ey" + "J", `hbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.${randomText(43)}`],
  ["authorization", "Authorization: Bearer" + " ", randomText(30)],
  ["authorization", "AUTHORIZATION: basic" + " ", "eDp5ejEyMzQ1Njc4OQ=="],
  ["url-password", "https://deploy" + ":", "tr0ub4dor&3"],
];

/** What stands behind a secret of that rule. */
export function afterToken(rule: string): string {
  return rule === "url-password" ? "@example.org/x\n" : "\n";
}
