/** Who acts for the operator, by which way they came in, and how they are named. */
import { Schema } from "effect"

/** `console`: a session of a browser. `token`: a token for scripts. `command`: the command line, on the machine itself. */
export const Via = Schema.Literal("console", "token", "command")
export type Via = typeof Via.Type

export interface Operator {
  readonly name: string
  readonly via: Via
}

/** An operator over HTTP: their session is open. */
export interface SignedInOperator extends Operator {
  readonly session_id: string
  readonly signed_in_at: number
  /** When the session ends by itself. */
  readonly expires_at: number
}

export const nameMax = 64
