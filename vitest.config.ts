import { defineConfig } from "vitest/config";

/** Four projects: `unit` and `contract` need nothing, `integration` needs git and an engine, `attacks` and `e2e` need the built CLI too. */
const shared = { restoreMocks: true, unstubEnvs: true, retry: 0, environment: "node" as const };

export default defineConfig({
  test: {
    projects: [
      { test: { ...shared, name: "unit", include: ["test/unit/**/*.test.ts"] } },
      {
        test: {
          ...shared,
          name: "contract",
          include: ["test/contract/**/*.test.ts"],
          testTimeout: 30_000,
          hookTimeout: 60_000,
        },
      },
      {
        test: {
          ...shared,
          name: "integration",
          include: ["test/integration/**/*.test.ts"],
          testTimeout: 60_000,
          hookTimeout: 120_000,
          fileParallelism: false,
        },
      },
      {
        test: {
          ...shared,
          name: "attacks",
          include: ["test/attacks/**/*.test.ts"],
          testTimeout: 120_000,
          hookTimeout: 180_000,
          fileParallelism: false,
        },
      },
      {
        test: {
          ...shared,
          name: "e2e",
          include: ["test/e2e/**/*.test.ts"],
          testTimeout: 120_000,
          hookTimeout: 180_000,
          fileParallelism: false,
        },
      },
    ],
  },
});
