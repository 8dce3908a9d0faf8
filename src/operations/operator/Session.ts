/** Schemas for the operator's sessions: single-use links, browser sessions, and tokens for scripts. */
import { Schema } from "effect"
import { Moment } from "../../kernel/Moment.ts"

/** The console's request: the code after the `#` of its link, or an empty body if the cookie identifies the session. */
export const SessionRequest = Schema.Struct({
  code: Schema.optional(Schema.String.pipe(Schema.maxLength(200)))
}).annotations({ identifier: "OperatorSessionRequest" })

/** A bearer token for `/v1/operator/*`. `expires_in` is in seconds. */
export const SessionToken = Schema.Struct({
  access_token: Schema.String,
  expires_in: Schema.Int,
  name: Schema.String
}).annotations({ identifier: "OperatorSessionToken" })
export interface SessionToken extends Schema.Schema.Type<typeof SessionToken> {}

export const Me = Schema.Struct({
  name: Schema.String,
  session_id: Schema.String,
  signed_in_at: Moment,
  expires_at: Moment
}).annotations({ identifier: "OperatorMe" })
export interface Me extends Schema.Schema.Type<typeof Me> {}

export const Session = Schema.Struct({
  id: Schema.String,
  name: Schema.String,
  /** `link` means a code that has not been used yet. */
  kind: Schema.Literal("link", "browser", "token"),
  created_at: Moment,
  signed_in_at: Schema.NullOr(Moment),
  expires_at: Moment,
  /** Whether this is the caller's own session. */
  current: Schema.Boolean
}).annotations({ identifier: "OperatorSession" })
export interface Session extends Schema.Schema.Type<typeof Session> {}

export const Sessions = Schema.Struct({ sessions: Schema.Array(Session) }).annotations({
  identifier: "OperatorSessions"
})

export const SessionEnded = Schema.Struct({ ended: Schema.Boolean }).annotations({ identifier: "OperatorSessionEnded" })
