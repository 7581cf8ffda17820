#!/usr/bin/env node
import "./check-node.mjs";
import { enableCompileCache } from "node:module";

// Whoever calls it again need not wait for types to be stripped again.
enableCompileCache();
await import("./cli.ts");
