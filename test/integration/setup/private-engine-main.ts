/**
 * Starts an engine of its own below a folder: `unshare --net node private-engine-main.ts FOLDER [DOCKERD-ARGUMENT…]`. In a network
 * namespace of its own, since a second dockerd would take the first one's bridge away.
 */
import { startEngine } from "../../../src/sandbox/docker/start-engine.ts";

const [root = "", ...extraArgs] = process.argv.slice(2);
const layout = {
  socketPath: `${root}/docker.sock`,
  pidFile: `${root}/docker.pid`,
  execRoot: `${root}/exec`,
  dataRoot: `${root}/data`,
  logPath: `${root}/log`,
  extraArgs,
};
try {
  const { endpoint } = await startEngine({ report: (line) => console.log(line), layout });
  console.log(`endpoint ${endpoint}`);
} catch (cause) {
  const { code, message, hint } = cause as { code?: string; message?: string; hint?: string };
  console.log(`${code}: ${message}\n${hint}`);
  process.exitCode = 3;
}
