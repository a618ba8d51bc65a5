// The import rules of docs/architecture.md. Checked by test/unit/import-rules.test.ts, which also proves that they bite.
const PURE = "util|model|tasks|policy|protocol";
const PARTS = "plan|door|bus|sandbox|workspace|gateway|agents|review|memory|skills|store|observe";
const rule = (name, from, to) => ({ name, severity: "error", from: { path: from }, to });

module.exports = {
  forbidden: [
    { name: "no-cycles", severity: "error", from: {}, to: { circular: true } },
    rule("util-is-a-leaf", "^src/util/", { path: "^src/(?!util/)" }),
    rule("model-sees-util", "^src/model/", { path: "^src/(?!(util|model)/)" }),
    rule("pure-siblings-do-not-meet", "^src/(tasks|policy|protocol)/", {
      path: "^src/",
      pathNot: "^src/($1|util|model)/",
    }),
    rule("pure-has-no-io", `^src/(${PURE})/`, { dependencyTypes: ["core"] }),
    rule("pure-has-only-zod", `^src/(${PURE})/`, {
      dependencyTypes: ["npm", "npm-dev"],
      pathNot: "(^|/)node_modules/zod/",
    }),
    rule("parts-do-not-meet", `^src/(${PARTS})/`, { path: "^src/", pathNot: `^src/($1|${PURE})/` }),
    rule("executor-sees-faces-only", "^src/executor/", { path: `^src/(${PARTS})/[^/]+/` }),
    rule("supervisor-sees-faces-only", "^src/supervisor/", { path: `^src/(${PARTS})/[^/]+/` }),
    rule("supervisor-below-entry", "^src/(supervisor|executor)/", { path: "^src/(cli|web|agent)/" }),
    rule("agent-is-small", "^src/agent/", { path: "^src/(?!(agent|util|model|protocol)/)" }),
    {
      name: "dockerode-in-one-place",
      severity: "error",
      from: { path: "^src/", pathNot: "^src/sandbox/docker/" },
      to: { path: "(^|/)node_modules/(@types/)?dockerode/" },
    },
    {
      name: "drivers-built-in-compose-only",
      severity: "error",
      from: { path: "^src/(cli|web)/", pathNot: "^src/cli/compose[a-z-]*\\.ts$" },
      to: { path: `^src/(${PARTS})/[^/]+/` },
    },
  ],
  options: {
    tsPreCompilationDeps: true,
    doNotFollow: { path: "node_modules" },
    tsConfig: { fileName: "tsconfig.json" },
  },
};
