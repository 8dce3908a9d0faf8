/** `tollgate/sandbox`: the simulated outside world, in the same process, for testing programs built on this package. */
import { Context, Layer } from "effect"
import * as Made from "../../sandbox/Sandbox.ts"

import "./contracts.ts"
export type { Sandbox as SandboxFacts, Settings } from "../../sandbox/Sandbox.ts"
export type { LeversContract } from "../../sandbox/Levers.ts"
export type { SandboxFailed } from "../../sandbox/Outside.ts"
export type { SteeredClock } from "../../sandbox/SteeredClock.ts"

/** Vendors, an issuer, a mailbox and a payment processor on a loopback port, and the levers that control them. */
export class Sandbox extends Context.Tag("tollgate/Sandbox")<Sandbox, Made.Sandbox>() {
  static readonly layer = (settings: Made.Settings = {}) => Layer.scoped(Sandbox, Made.make(settings))
}
