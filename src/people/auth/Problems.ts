import { Schema } from "effect"
import { BrokenRule } from "../../kernel/InvalidRequest.ts"
import { Problem } from "../../kernel/Problem.ts"

/** The text contains the service's name: `Tollgate client ID is required`. */
export class ClientIdRequired extends Problem<ClientIdRequired>()("ClientIdRequired", {
  status: 400,
  error: "client ID is required",
  like: /client ID is required$/,
  fields: {
    field: Schema.propertySignature(Schema.String).pipe(Schema.withConstructorDefault(() => "client_id")),
    rule: Schema.propertySignature(Schema.String).pipe(Schema.withConstructorDefault(() => "required"))
  }
}) {}

export class ClientIdNotFound extends Problem<ClientIdNotFound>()("ClientIdNotFound", {
  status: 404,
  error: "Client ID not found"
}) {}

/** The text repeats the value: `Unsupported grant_type: password`. */
export class UnsupportedGrantType extends Problem<UnsupportedGrantType>()("UnsupportedGrantType", {
  status: 400,
  error: "Unsupported grant_type: ",
  like: /^Unsupported grant_type: /,
  details: { field: "grant_type", rule: "refresh_token" }
}) {}

/** The text names the unknown scope. */
export class InvalidScope extends Problem<InvalidScope>()("InvalidScope", {
  status: 400,
  error: "scope: unknown scope",
  code: "invalid_scope",
  fields: BrokenRule
}) {}

/** The refresh token is unknown, expired, revoked or already used. */
export class InvalidGrant extends Problem<InvalidGrant>()("InvalidGrant", {
  status: 401,
  error: "invalid or expired token",
  code: "invalid_grant"
}) {}

export class SessionEnded extends Problem<SessionEnded>()("SessionEnded", {
  status: 401,
  error: "this browser has no session, or the session has ended; sign in",
  code: "session_ended"
}) {}

/** An error of an OAuth endpoint. Its code comes from RFC 6749 or RFC 8628, except for an unsupported grant type. */
export class OAuthRefusal extends Schema.TaggedError<OAuthRefusal>()("OAuthRefusal", {
  status: Schema.Literal(400, 401),
  error: Schema.String,
  error_description: Schema.optional(Schema.String)
}) {
  static of(error: string, error_description?: string, status: 400 | 401 = 400): OAuthRefusal {
    return new OAuthRefusal({ status, error, ...(error_description !== undefined && { error_description }) })
  }
  override get message() {
    return this.error_description ?? this.error
  }
}
