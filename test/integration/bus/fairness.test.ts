import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { connect } from "../../../src/agent/client.ts";
import { openBusRig } from "../door/door-rig.ts";

const UNBOUNDED = {
  callsPerSecond: 1e9,
  callBurst: 1e9,
  sentCharsPerSecond: 1e12,
  sentCharsBurst: 1e12,
};
const FLOODER = fileURLToPath(new URL("./flooder.ts", import.meta.url));

interface Times {
  readonly p50: number;
  readonly p99: number;
}

/** Times of `count` pings one after the other, in milliseconds. */
async function timePings(socketPath: string, count: number): Promise<Times> {
  const client = await connect({ socketPath });
  const times: number[] = [];
  for (let index = 0; index < count; index += 1) {
    const startedMs = performance.now();
    await client.call("ping", {});
    times.push(performance.now() - startedMs);
  }
  client.close();
  times.sort((a, b) => a - b);
  const at = (share: number) => times[Math.floor(count * share)] ?? Number.NaN;
  return { p50: at(0.5), p99: at(0.99) };
}

/**
 * Half of the calls within a few turns of the loop, nearly all within what the scheduler of a busy machine adds. Without a share per
 * turn the median is tens of milliseconds.
 */
function expectQuick(flooded: Times, idle: Times): void {
  expect(flooded.p50).toBeLessThan(Math.max(15 * idle.p50, 5));
  expect(flooded.p99).toBeLessThan(Math.max(30 * idle.p99, 50));
}

test("a flood on one door leaves the calls through another door quick", async () => {
  await using loud = await openBusRig({ task: "loud" });
  await using quiet = await openBusRig({ task: "quiet" });
  await timePings(quiet.socketPath, 500);
  const idle = await timePings(quiet.socketPath, 1000);
  // Another process: the flood must not be slowed by sharing this one's event loop.
  const flooder = fork(FLOODER, [loud.socketPath, "16"]);
  try {
    await once(flooder, "message");
    // The burst is used up and the rate bites.
    const isRefused = () => loud.port.records.some(({ errorCode }) => errorCode === 4008);
    await expect.poll(isRefused, { timeout: 10_000 }).toBe(true);
    const flooded = await timePings(quiet.socketPath, 1000);
    expectQuick(flooded, idle);
  } finally {
    flooder.kill("SIGKILL");
    await once(flooder, "exit");
  }
});

test.each(["frames", "http"])(
  "a caller without a rate bound is still only one of many (%s)",
  async (language) => {
    await using loud = await openBusRig({ task: "loud", bus: UNBOUNDED });
    await using quiet = await openBusRig({ task: "quiet" });
    let calls = 0;
    loud.port.record = () => {
      calls += 1;
    };
    await timePings(quiet.socketPath, 500);
    const idle = await timePings(quiet.socketPath, 1000);
    const flooder = fork(FLOODER, [loud.socketPath, "8", language]);
    try {
      await once(flooder, "message");
      await expect.poll(() => calls).toBeGreaterThan(100);
      expectQuick(await timePings(quiet.socketPath, 1000), idle);
    } finally {
      flooder.kill("SIGKILL");
      await once(flooder, "exit");
    }
  },
);
