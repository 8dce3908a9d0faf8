/**
 * The processes that serve one SQLite file together (`serve --workers`). One of them owns the writer and leads: it runs the loops. The other
 * processes only respond to requests. They have no lease: each run holds the lock on its file (`Runs`), and the operating system notifies the owner
 * when a process ends.
 */
import { Context } from "effect"
import type { NodeContract } from "./Runs.ts"
import type { SignalsContract } from "./Signals.ts"

export interface PeersContract {
  readonly node: NodeContract
  /** When `publish` returns, the signal has reached all other processes, except one that does not respond for some seconds. */
  readonly signals: SignalsContract
}

export class Peers extends Context.Tag("tollgate/sql/Peers")<Peers, PeersContract>() {}
