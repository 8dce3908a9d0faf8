/** Reads the configured conditions for a new account: `registration`. */
import { Layer, Schema } from "effect"
import { TenantId } from "../../kernel/Ids.ts"
import { NonEmpty } from "../../kernel/Setting.ts"
import { invitedOnly, RegistrationPolicy } from "./RegistrationPolicy.ts"
import type { Policy } from "./RegistrationPolicy.ts"

const Domain = Schema.transform(
  Schema.String,
  Schema.String.pipe(Schema.pattern(/^[a-z0-9-]+(\.[a-z0-9-]+)+$/, { message: () => "must be a domain: example.com" })),
  { strict: true, decode: (text) => text.toLowerCase(), encode: (text) => text }
)

const EmailAddress = Schema.transform(
  Schema.String,
  Schema.String.pipe(Schema.pattern(/^[^\s@]+@[^\s@]+$/, { message: () => "must be an address: ada@example.com" })),
  { strict: true, decode: (text) => text.toLowerCase(), encode: (text) => text }
)

const GroupRule = Schema.Struct({
  /** The provider's name in `identity`. Its groups claim contains the group. */
  provider: NonEmpty,
  group: NonEmpty,
  /** The tenant that users in the group join. */
  team: Schema.optional(TenantId),
  role: Schema.optionalWith(Schema.Literal("member", "admin"), { default: () => "member" as const })
})

const none = { default: () => [] }

const Registration = Schema.Struct({
  open: Schema.optionalWith(Schema.Boolean, { default: () => invitedOnly.open }),
  domains: Schema.optionalWith(Schema.Array(Domain), none),
  emails: Schema.optionalWith(Schema.Array(EmailAddress), none),
  groups: Schema.optionalWith(Schema.Array(GroupRule), none)
})

export const fields = {
  /** The conditions for a new account. Without this entry, every new account requires an invitation. */
  registration: Schema.optionalWith(Registration, { default: (): Policy => invitedOnly })
}

export const layer = ({ registration }: { readonly registration: Policy }) =>
  Layer.succeed(RegistrationPolicy, registration)
