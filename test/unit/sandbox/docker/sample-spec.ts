import { runIdSchema, taskIdSchema } from "../../../../src/model/ids.ts";
import type { SandboxSpec } from "../../../../src/sandbox/sandbox.ts";

export const SAMPLE_SPEC: SandboxSpec = {
  key: {
    runId: runIdSchema.parse("20261130-142501-3f9a2c"),
    taskId: taskIdSchema.parse("build"),
    attempt: 2,
  },
  stateId: "0123456789abcdef",
  name: "one",
  image: "agent:1",
  argv: ["tool", "--flag"],
  stdinPath: null,
  env: { PATH: "/usr/bin:/bin", HOME: "/home/agent" },
  uid: 10_001,
  workingDir: "/workspace",
  mounts: [{ type: "volume", volume: "ws", target: "/workspace", readOnly: false }],
  caps: {
    cpus: 0.5,
    memoryBytes: 1_000_000,
    swapBytes: 200_000,
    pids: 64,
    openFiles: 100,
    diskBytes: null,
    tmpBytes: 8_000_000,
    ioReadBytesPerSecond: 5,
    ioWriteBytesPerSecond: null,
    ioReadOpsPerSecond: null,
    ioWriteOpsPerSecond: 7,
  },
  innerTimeoutMs: 0,
  ioDevicePath: null,
  labels: { "bulkhead.run": "forged", extra: "1" },
};
