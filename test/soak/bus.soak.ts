/**
 * One million bad frames on one door: every one answered with an error, memory flat, the door still serves. `node bus.soak.ts [FRAMES]`
 * prints its figures and exits non-zero where one of them is wrong.
 */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { connect } from "../../src/agent/client.ts";
import { openBusRig } from "../integration/door/door-rig.ts";
import { sendBadFrames } from "../integration/door/send-bad-frames.ts";

const MAX_GROWTH_BYTES = 16 * 1024 * 1024;
const frames = Number(process.argv[2] ?? 1_000_000);
const unbounded = { callsPerSecond: 1e9, callBurst: 1e9, sentCharsPerSecond: 1e12, sentCharsBurst: 1e12 };

const rig = await openBusRig({ bus: unbounded });
// The port in memory would keep a row for each call; what is measured here is the door and the bus.
rig.port.record = () => undefined;
/** What is in use after a collection: the resident size also has what V8 keeps for later. */
setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;
const inUse = () => {
  collect();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
};
const used: number[] = [];
const startedMs = performance.now();
const figures = await sendBadFrames(rig.socketPath, frames, () => used.push(inUse()));
const tookMs = performance.now() - startedMs;
const client = await connect({ socketPath: rig.socketPath });
const { pong } = await client.call("ping", {});
client.close();
await rig[Symbol.asyncDispose]();

const [first = 0, ...later] = used;
const growthBytes = Math.max(...later) - first;
const mib = (bytes: number) => `${Math.round(bytes / 1024 / 1024)} MiB`;
console.log(
  `bus soak: ${figures.sent} bad frames, ${figures.replies} errors back, ${figures.wrong} of another form, ` +
    `${Math.round((1000 * frames) / tookMs)} a second, memory ${used.map(mib).join(" → ")}, ${rig.logged.length} logged as bugs`,
);
const isRight = figures.replies === frames && figures.wrong === 0 && rig.logged.length === 0 && pong;
if (!isRight || growthBytes > MAX_GROWTH_BYTES) {
  console.error(
    `bus soak FAILED (memory grew by ${mib(growthBytes)}, the limit is ${mib(MAX_GROWTH_BYTES)})`,
  );
  process.exitCode = 1;
}
