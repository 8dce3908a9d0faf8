/**
 * Schemas for requests that provision people, tenants and keys under the caller's own ids, and for their responses.
 *
 * Where the specification is silent:
 * - A PUT creates the resource if its external id is new, and otherwise updates the fields that differ. A person's address, a tenant's first owner
 *   and a key's tenant cannot change. A different address, or a different tenant for a key, is rejected with 409 `external_id_used`; a different
 *   owner is ignored.
 * - The operator vouches for a person's address, so a later sign-in with the same verified address opens this account.
 * - `credit_usd` is given only once per external id, by the first request that contains it, even if the person is removed and created again.
 * - An absent field leaves its value unchanged. A key's limits are the exception: each PUT replaces all of them, so an absent limit is removed.
 * - Only the response that creates a key contains the key itself. To replace a key, delete it and create it again.
 * - DELETE of a person suspends them, ends their sign-ins, revokes their keys and deletes their passkeys. DELETE of a tenant suspends it and revokes
 *   its keys. Both keep credit and records. A later PUT with the same external id activates the person or tenant again.
 * - A request that gives credit or an allowance also requires the scope `grants`. A request that invites to a tenant or contains `team_external_id`
 *   requires `tenants`.
 * - `team_external_id` makes the person a member of that tenant. It does not lift a suspension there, and no request removes a person from a team.
 * - Each POST creates another tenant. A PUT creates only one per external id.
 * - An invitation without a tenant creates the person and sends an email with a link that opens the console once, within seven days. An invitation to
 *   a tenant is sent in the name of its first active owner. The email and the team's page contain this name. An email never contains an API key.
 */
import { Schema } from "effect"
import { Amount } from "../../kernel/Amount.ts"
import { Email } from "../../kernel/Email.ts"
import { AccountId, ApplicationId, TenantId } from "../../kernel/Ids.ts"
import { Moment } from "../../kernel/Moment.ts"
import { Usd } from "../../kernel/Money.ts"
import { Terms } from "../../money/allowances/Allowance.ts"
import { Role } from "../../people/tenants/Account.ts"
import { NewApplication } from "../../people/tenants/Application.ts"
import { NewOrganisation } from "../../people/tenants/Organisation.ts"
import { Line } from "../operator/Act.ts"
import { PersonStatus, TenantStatus } from "../operator/Found.ts"

export const ExternalId = Line.annotations({
  description: "The caller's own id; must be 1 to 200 characters on one line"
})

const credit = {
  credit_usd: Schema.optional(Amount),
  /** The allowance for the tenant, or for the person's home tenant. */
  allowance: Schema.optional(Terms)
} as const

export const PersonWanted = Schema.Struct({
  email: Email,
  /** The person's name. Defaults to the part of the address before the `@`. */
  name: Schema.optional(NewOrganisation.fields.name),
  suspended: Schema.optional(Schema.Boolean),
  /** The external id of the tenant that the person joins. */
  team_external_id: Schema.optional(ExternalId),
  ...credit
}).annotations({ identifier: "PersonWanted" })
export interface PersonWanted extends Schema.Schema.Type<typeof PersonWanted> {}

export const TenantWanted = Schema.Struct({
  name: NewOrganisation.fields.name,
  /** The first owner's address. If no account has this address, the request creates the person. */
  owner_email: Email,
  suspended: Schema.optional(Schema.Boolean),
  ...credit
}).annotations({ identifier: "TenantWanted" })
export interface TenantWanted extends Schema.Schema.Type<typeof TenantWanted> {}

const { allowed_models, expires_at, name, spending_limit_period, spending_limit_usd, tags } = NewApplication.fields

export const KeyWanted = Schema.Struct({
  tenant_id: Schema.optional(TenantId),
  /** The tenant's external id, as an alternative to `tenant_id`. */
  tenant_external_id: Schema.optional(ExternalId),
  /** The holder of the key. Defaults to the tenant's first active owner. Without a tenant, the key belongs to the person's home tenant. */
  person_external_id: Schema.optional(ExternalId),
  name,
  allowed_models,
  expires_at,
  spending_limit_usd,
  spending_limit_period,
  tags
}).pipe(
  Schema.filter(
    ({ person_external_id, tenant_external_id, tenant_id }) =>
      (tenant_id === undefined || tenant_external_id === undefined) &&
      (tenant_id ?? tenant_external_id ?? person_external_id) !== undefined,
    {
      message: () =>
        "must contain tenant_id, tenant_external_id or person_external_id, but not both tenant_id and tenant_external_id"
    }
  ),
  Schema.annotations({ identifier: "KeyWanted" })
)
export interface KeyWanted extends Schema.Schema.Type<typeof KeyWanted> {}

const made = {
  /** The external id; null if the person or tenant has none. */
  external_id: Schema.NullOr(Schema.String),
  /** Whether this request created the resource. */
  created: Schema.Boolean
} as const

export const ProvisionedPerson = Schema.Struct({
  ...made,
  id: AccountId,
  home_tenant_id: TenantId,
  email: Schema.String,
  name: Schema.String,
  status: PersonStatus
}).annotations({ identifier: "ProvisionedPerson" })
export interface ProvisionedPerson extends Schema.Schema.Type<typeof ProvisionedPerson> {}

export const ProvisionedTenant = Schema.Struct({
  ...made,
  id: TenantId,
  name: Schema.String,
  owner_email: Schema.NullOr(Schema.String),
  balance: Usd,
  status: TenantStatus
}).annotations({ identifier: "ProvisionedTenant" })
export interface ProvisionedTenant extends Schema.Schema.Type<typeof ProvisionedTenant> {}

export const ProvisionedKey = Schema.Struct({
  ...made,
  id: ApplicationId,
  tenant_id: TenantId,
  account_id: AccountId,
  name: Schema.String,
  key_prefix: Schema.String,
  spending_limit_usd: Schema.NullOr(Usd),
  spending_limit_period: Schema.NullOr(Schema.Literal("month", "total")),
  spent_usd: Schema.NullOr(Usd),
  expires_at: Schema.NullOr(Moment),
  allowed_models: Schema.NullOr(Schema.Array(Schema.String)),
  tags: Schema.NullOr(Schema.Record({ key: Schema.String, value: Schema.String })),
  /** The key itself. Only the response that creates the key contains it. */
  api_key: Schema.optional(Schema.String)
}).annotations({ identifier: "ProvisionedKey" })
export interface ProvisionedKey extends Schema.Schema.Type<typeof ProvisionedKey> {}

export const InviteWanted = Schema.Struct({
  email: Email,
  /** The person's name if this request creates the person. */
  name: Schema.optional(NewOrganisation.fields.name),
  /** The tenant to join. Without it, the link opens the console in the person's home tenant. */
  tenant_id: Schema.optional(TenantId),
  /** The person's role in the tenant. Defaults to `member`. */
  role: Schema.optional(Role)
}).pipe(
  Schema.filter(({ role, tenant_id }) => role === undefined || tenant_id !== undefined, {
    message: () => "role requires a tenant_id"
  }),
  Schema.annotations({ identifier: "OperatorInviteWanted" })
)
export interface InviteWanted extends Schema.Schema.Type<typeof InviteWanted> {}

export const InviteSent = Schema.Struct({
  email: Schema.String,
  /** The tenant; null if the invitation is not to a tenant. */
  tenant_id: Schema.NullOr(TenantId),
  /** Whether this request created the person. */
  created: Schema.Boolean,
  /** When the link in the email expires. */
  expires_at: Moment
}).annotations({ identifier: "OperatorInviteSent" })
export interface InviteSent extends Schema.Schema.Type<typeof InviteSent> {}

export const Removed = Schema.Struct({ external_id: Schema.String, keys_revoked: Schema.Int }).annotations({
  identifier: "ProvisioningRemoved"
})
export interface Removed extends Schema.Schema.Type<typeof Removed> {}
