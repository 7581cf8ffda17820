#!/usr/bin/env node
import "./check-node.mjs";

await import("./cli.ts");
