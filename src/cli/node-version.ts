/** The oldest Node with everything bulkhead uses (node:sqlite without a flag, type stripping). */
const NEEDED = [22, 18] as const;

/** Ends the process with a plain sentence on an older Node, before a module that it cannot load is reached. */
export function checkNodeVersion(version: string): void {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  if (major > NEEDED[0] || (major === NEEDED[0] && minor >= NEEDED[1])) return;
  process.stderr.write(
    `error: bulkhead needs Node ${NEEDED.join(".")} or newer; this is ${version}\nhint: install Node 24 (for one project: npm install node@24)\n`,
  );
  process.exit(2);
}
