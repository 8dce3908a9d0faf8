/** The acting operator: their name and how they signed in. */
import { Schema } from "effect"

/** `console` means a browser session, `token` a script's token or a management key, and `command` the command line on the server. */
export const Via = Schema.Literal("console", "token", "command")
export type Via = typeof Via.Type

export interface Operator {
  readonly name: string
  readonly via: Via
}

/** An operator who is authenticated over HTTP, by a session or a management key. */
export interface SignedInOperator extends Operator {
  readonly session_id: string
  readonly signed_in_at: number
  /** When the session or management key expires. */
  readonly expires_at: number
  /** A management key's scopes. Absent for a session, because a session may do everything. */
  readonly scopes?: ReadonlyArray<string> | undefined
}

export const nameMax = 64
