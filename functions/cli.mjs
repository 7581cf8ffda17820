#!/usr/bin/env node
import "./check-node.mjs";
// An older Node lacks the function: a named import would fail before the sentence about the wanted version.
import * as nodeModule from "node:module";

// The second call loads code whose types are already stripped.
nodeModule.enableCompileCache();
await import("./cli.ts");
