#!/usr/bin/env node
/** The command of the npm package; the built cli.mjs is beside it. */
import "./check-node.mjs";

await import("./cli.mjs");
