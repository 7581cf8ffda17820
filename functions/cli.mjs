#!/usr/bin/env node
import "./check-node.mjs";
// An older Node does not have the function: a named import of it would fail before the sentence that says what is needed.
import * as nodeModule from "node:module";

// A second call need not wait for types to be stripped again.
nodeModule.enableCompileCache();
await import("./cli.ts");
