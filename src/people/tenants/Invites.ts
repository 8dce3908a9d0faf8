/**
 * Invitations to tenants. The service emails a link. The link works for 14 days, for an account that has verified the address.
 *
 * Where the specification is silent:
 * - The service stores a tenant's 500 newest invitations and all older open ones. The link of a deleted invitation returns 404 `invite_not_found`.
 */
import type { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Duration, Effect } from "effect"
import { randomBytes } from "node:crypto"
import type { DeploymentSecretContract } from "../../storage/secret/DeploymentSecret.ts"
import type { Ending } from "../../books/ledger/write/Ending.ts"
import { masked } from "../../kernel/Email.ts"
import * as Ids from "../../kernel/Ids.ts"
import type { AccountId, TenantId } from "../../kernel/Ids.ts"
import { toDay } from "../../kernel/Moment.ts"
import type { ServiceInfo } from "../../kernel/ServiceInfo.ts"
import { statement } from "../../books/ledger/rules/Transaction.ts"
import type { Statement } from "../../books/ledger/rules/Transaction.ts"
import { afterCommit } from "../../books/ledger/write/Writer.ts"
import type { WriterContract } from "../../books/ledger/write/Writer.ts"
import { plainName } from "../mail/Letter.ts"
import type { Letter, OutboxContract } from "../mail/Outbox.ts"
import { notice } from "../notifications/Notification.ts"
import type { Role } from "./Account.ts"
import type { BelongingContract } from "./Belonging.ts"
import type { Members } from "./Members.ts"
import { mayTouch } from "./Organisation.ts"
import type { Invite, InviteId } from "./Organisation.ts"
import type { OrganisationsContract } from "./Organisations.ts"
import { AlreadyMember, EmailMismatch, InsufficientRole, InviteNotFound, TeamFull } from "./Problems.ts"
import type { TenantsContract } from "./Tenants.ts"

export const inviteLifetime = Duration.days(14)

/** The number of newest invitations saved per tenant. Older invitations are saved only while open. */
const newestMax = 500

interface Row {
  readonly id: InviteId
  readonly tenant_id: TenantId
  readonly email: string
  readonly role: Role
  readonly status: "pending" | "accepted" | "revoked"
  readonly invited_by: AccountId
  readonly created_at: number
  readonly expires_at: number
}

export interface Dependencies {
  readonly sql: SqlClient
  readonly writer: WriterContract
  readonly secret: DeploymentSecretContract
  readonly outbox: OutboxContract
  readonly tenants: TenantsContract
  readonly belonging: BelongingContract
  readonly members: Members
  readonly info: ServiceInfo["Type"]
}

export const make = (dependencies: Dependencies) => ({
  invites: makeList(dependencies),
  invite: makeInvite(dependencies),
  revoke: makeRevoke(dependencies),
  accept: makeAccept(dependencies),
  previewInvite: makePreview(dependencies)
})

// ---- reading ------------------------------------------------------------------------------------------------------------

const columns = (sql: SqlClient) =>
  sql.literal("id, tenant_id, email, role, status, invited_by, created_at, expires_at")

const hashOf = (secret: DeploymentSecretContract, token: string) => secret.hash("tenant_invite", token)

const makeList = ({ members, sql }: Dependencies): OrganisationsContract["invites"] =>
  Effect.fn("Organisations.invites")(function* ({ caller, tenant_id }) {
    yield* members.managed(tenant_id, caller.account_id)
    const now = yield* Clock.currentTimeMillis
    const rows = yield* Effect.orDie(
      sql<Row>`SELECT ${columns(sql)} FROM tollgate_tenants_invites
        WHERE tenant_id = ${tenant_id} ORDER BY id DESC LIMIT ${newestMax}`
    )
    return rows.map((row) => inviteOf(row, now))
  })

const makePreview = ({ secret, sql, tenants }: Dependencies): OrganisationsContract["previewInvite"] =>
  Effect.fn("Organisations.previewInvite")(function* ({ token }) {
    const [row] = yield* Effect.orDie(
      sql<
        Row & { readonly inviter_name: string | null }
      >`SELECT i.*, a.name AS inviter_name FROM tollgate_tenants_invites i
        LEFT JOIN tollgate_tenants_accounts a ON a.id = i.invited_by
        WHERE i.token_hash = ${hashOf(secret, token)}`
    )
    if (row === undefined) return yield* new InviteNotFound()
    const { email, expires_at, role, status } = inviteOf(row, yield* Clock.currentTimeMillis)
    const tenant_name = (yield* tenants.nameOf(row.tenant_id)) ?? ""
    return { tenant_name, role, inviter_name: row.inviter_name ?? "", email_masked: masked(email), status, expires_at }
  })

// ---- inviting -----------------------------------------------------------------------------------------------------------

const makeInvite = (dependencies: Dependencies): OrganisationsContract["invite"] => {
  const { info, members, outbox, secret, sql, tenants, writer } = dependencies
  const invite: OrganisationsContract["invite"] = Effect.fn("Organisations.invite")(function* (request) {
    const { beside = [], caller, invite: draft, tenant_id } = request
    const by = caller.account_id
    const found = yield* members.managed(tenant_id, by)
    const { email } = draft
    if (!mayTouch(found.role, draft.role)) return yield* new InsufficientRole({ tenant_id })
    if (found.members.some((member) => member.email === email)) return yield* new AlreadyMember({ tenant_id, email })
    yield* outbox.room(by, email)
    const now = yield* Clock.currentTimeMillis
    const token = randomBytes(32).toString("hex")
    const row: Row = {
      id: Ids.at("inv", now) as InviteId,
      tenant_id,
      email,
      role: draft.role,
      status: "pending",
      invited_by: by,
      created_at: now,
      expires_at: now + Duration.toMillis(inviteLifetime)
    }
    const tenant_name = (yield* tenants.nameOf(tenant_id)) ?? tenant_id
    const inviter = found.members.find(({ account_id }) => account_id === by)?.name ?? ""
    const letter = yield* outbox.requiredLetter(letterOf(row, { inviter, tenant_name, token }, info))
    const invited = (yield* tenants.accountOfEmail(email))?.account_id
    const statements = [
      members.stillHasRole(by, tenant_id, found.role),
      ...saveStatements(sql, row, hashOf(secret, token)),
      letter,
      ...(invited === undefined ? [] : [noticeOf(row, { inviter, tenant_name, invited }, now)]),
      ...beside
    ]
    return yield* afterCommit(writer.submit({ postings: [], statements }), outbox.wake).pipe(
      Effect.as(inviteOf(row, now)),
      Effect.catchTag("Conflict", () => invite(request))
    )
  })
  return invite
}

/** Builds statements that save an invitation, revoke an open one to the same address, and delete the tenant's old closed ones. */
const saveStatements = (sql: SqlClient, row: Row, token_hash: string): ReadonlyArray<Statement> => {
  const { created_at: now, email, tenant_id } = row
  return [
    statement(sql`UPDATE tollgate_tenants_invites SET status = 'revoked', ended_at = ${now}
      WHERE tenant_id = ${tenant_id} AND email = ${email} AND status = 'pending'`),
    statement(sql`DELETE FROM tollgate_tenants_invites WHERE tenant_id = ${tenant_id}
      AND (status <> 'pending' OR expires_at <= ${now})
      AND id <= (SELECT id FROM tollgate_tenants_invites WHERE tenant_id = ${tenant_id}
        ORDER BY id DESC LIMIT 1 OFFSET ${sql.literal(String(newestMax - 1))})`),
    statement(sql`INSERT INTO tollgate_tenants_invites ${sql.insert({ ...row, token_hash, ended_at: null })}`)
  ]
}

// ---- ending an invitation -----------------------------------------------------------------------------------------------

const makeRevoke = ({ members, sql, writer }: Dependencies): OrganisationsContract["revoke"] => {
  const revoke: OrganisationsContract["revoke"] = Effect.fn("Organisations.revoke")(function* (request) {
    const { caller, invite_id, tenant_id } = request
    const { role } = yield* members.managed(tenant_id, caller.account_id)
    const now = yield* Clock.currentTimeMillis
    const [row] = yield* Effect.orDie(
      sql<Row>`SELECT ${columns(sql)} FROM tollgate_tenants_invites WHERE id = ${invite_id} AND tenant_id = ${tenant_id}`
    )
    if (row === undefined || row.status === "accepted") return yield* new InviteNotFound()
    if (row.status === "revoked") return inviteOf(row, now)
    if (!mayTouch(role, row.role)) return yield* new InsufficientRole({ tenant_id })
    const statements = [
      members.stillHasRole(caller.account_id, tenant_id, role),
      statement(
        sql`UPDATE tollgate_tenants_invites SET status = 'revoked', ended_at = ${now}
          WHERE id = ${invite_id} AND status = 'pending' RETURNING id`,
        1
      )
    ]
    return yield* writer.submit({ postings: [], statements }).pipe(
      Effect.as(inviteOf({ ...row, status: "revoked" }, now)),
      Effect.catchTag("Conflict", () => revoke(request))
    )
  })
  return revoke
}

const makeAccept = (dependencies: Dependencies): OrganisationsContract["accept"] => {
  const { belonging, members, secret, sql, tenants, writer } = dependencies
  const membershipOf = (account: AccountId, tenant: TenantId) =>
    Effect.map(tenants.memberships(account), (all) => all.find(({ tenant_id }) => tenant_id === tenant))

  const accept: OrganisationsContract["accept"] = Effect.fn("Organisations.accept")(function* (request) {
    const { account_id } = request.caller
    const now = yield* Clock.currentTimeMillis
    const [row] = yield* Effect.orDie(
      sql<Row>`SELECT ${columns(sql)} FROM tollgate_tenants_invites WHERE token_hash = ${hashOf(secret, request.token)}`
    )
    if (row === undefined || row.status === "revoked") return yield* new InviteNotFound()
    const { tenant_id } = row
    if ((yield* tenants.verifiedEmail(account_id)) !== row.email) return yield* new EmailMismatch()
    const current = yield* membershipOf(account_id, tenant_id)
    if (row.status === "accepted") return current ?? (yield* new InviteNotFound())
    if (row.expires_at <= now) return yield* new InviteNotFound()
    // An invitation does not lift a suspension.
    if (current !== undefined && current.status !== "active") return yield* new InviteNotFound()
    const joins = current === undefined
    const owner = joins && row.role === "owner"
    const seats = yield* seatsFor(tenants, tenant_id, joins)
    yield* members.hasRoom(account_id, joins, owner)
    const statements = [
      members.stillHasRoom(account_id, joins, owner),
      ...joinStatements(sql, row, account_id, joins, seats, now)
    ]
    return yield* afterCommit(writer.submit({ postings: [], statements }), belonging.changed(account_id)).pipe(
      Effect.zipRight(membershipOf(account_id, tenant_id)),
      Effect.flatMap((membership) => (membership === undefined ? new InviteNotFound() : Effect.succeed(membership))),
      Effect.catchTag("Conflict", () => accept(request))
    )
  })
  return accept
}

/** Returns the number of seats, unlimited without a plan. Fails if the account would join and all seats are taken. */
const seatsFor = Effect.fnUntraced(function* (tenants: TenantsContract, tenant_id: TenantId, joins: boolean) {
  const plan = yield* tenants.plan(tenant_id)
  const seats = plan.plan === "none" ? Number.MAX_SAFE_INTEGER : plan.seats
  const taken = (yield* tenants.members(tenant_id)).length
  return joins && taken >= seats ? yield* new TeamFull({ tenant_id, seats, members: taken }) : seats
})

/** Builds the statements that accept an invitation and make the account a member if a seat is free. */
const joinStatements = (
  sql: SqlClient,
  { id, role, tenant_id }: Row,
  account_id: AccountId,
  joins: boolean,
  seats: number,
  now: number
): ReadonlyArray<Statement> => [
  statement(
    sql`UPDATE tollgate_tenants_invites SET status = 'accepted', ended_at = ${now} WHERE id = ${id} AND status = 'pending'
      RETURNING id`,
    1
  ),
  statement(
    sql`INSERT INTO tollgate_tenants_memberships (account_id, tenant_id, role, status, created_at, updated_at)
      SELECT ${account_id}, ${tenant_id}, ${role}, 'active', ${now}, ${now}
      WHERE ${joins ? 0 : 1} OR (SELECT count(*) FROM tollgate_tenants_memberships
        WHERE tenant_id = ${tenant_id} AND status <> 'removed') < ${seats}
      ON CONFLICT (account_id, tenant_id) DO UPDATE SET role = excluded.role, status = 'active',
        created_at = excluded.created_at, updated_at = excluded.updated_at WHERE tollgate_tenants_memberships.status = 'removed'
      RETURNING account_id`,
    joins ? 1 : 0
  )
]

// ---- texts for users ---------------------------------------------------------------------------------------------------

const inviteOf = (row: Row, now: number): Invite => ({
  ...row,
  status: row.status === "pending" && row.expires_at <= now ? "expired" : row.status
})

const letterOf = (
  { email, expires_at, id, invited_by, role }: Row,
  { inviter, tenant_name, token }: { readonly inviter: string; readonly tenant_name: string; readonly token: string },
  { public_url, service_name }: ServiceInfo["Type"]
): Letter => {
  const [from, team] = [plainName(inviter, "Another user"), plainName(tenant_name, "a team")]
  return {
    key: `invite/${id}`,
    to: email,
    caused_by: invited_by,
    subject: `${from} invites you to ${team}`,
    text: [
      `${from} invites you to join ${team} on ${service_name} as ${role}.`,
      `Sign in with this address, then accept the invitation:`,
      `${public_url}/invites/${token}`,
      `The link works until ${toDay(expires_at)}. If you did not expect an invitation, ignore this email.`
    ].join("\n\n")
  }
}

/** Notifies an invited user who has an account. Only the email contains the token. */
const noticeOf = (
  { email, id, role, tenant_id }: Row,
  {
    invited,
    inviter,
    tenant_name
  }: { readonly invited: AccountId; readonly inviter: string; readonly tenant_name: string },
  now: number
) =>
  notice(
    {
      account_id: invited,
      kind: "tenant_invite",
      title: `An invitation to ${tenant_name}`,
      text: `${inviter} invites you to join ${tenant_name} as ${role}. The email to ${email} contains the link.`,
      data: { tenant_id, invite_id: id }
    },
    now
  )

/** Revokes open invitations, because their tokens were issued under the old secret. */
export const invitationsEnd: Ending = {
  count: (sql, now) =>
    sql`SELECT count(*) AS n FROM tollgate_tenants_invites WHERE status = 'pending' AND expires_at > ${now}`,
  statements: (sql, now) => [
    statement(sql`UPDATE tollgate_tenants_invites SET status = 'revoked', ended_at = ${now} WHERE status = 'pending'`)
  ],
  notice: (n) => `${n} open invitations to teams are revoked; people must be invited again`
}
