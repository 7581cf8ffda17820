#!/usr/bin/env node
/** The command of the npm package; beside it stands cli.mjs, which is built. */
import "./check-node.mjs";

await import("./cli.mjs");
