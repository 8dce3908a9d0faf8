#!/usr/bin/env node
/** The process: flags of the engine, then the command line. */
import "./V8.ts"

// Imported dynamically: static imports of a bundle are evaluated before the flags above are set, and V8 would then allocate objects of
// each call among the long-lived.
void import("./commands/Main.ts")
