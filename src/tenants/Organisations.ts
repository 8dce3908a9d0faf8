/**
 * Tenants that people share: made, joined by invitation, left. Who may do what is decided on what is read, and guarded again in
 * the transaction that does it; where the two differ somebody was faster, and it is decided anew.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Context, Duration, Effect, Layer } from "effect"
import { randomBytes } from "node:crypto"
import { DeploymentSecret } from "../auth/DeploymentSecret.ts"
import type { Ending } from "../auth/DeploymentSecret.ts"
import { ServiceInfo } from "../kernel/ServiceInfo.ts"
import { InvalidRequest } from "../kernel/InvalidRequest.ts"
import * as Ids from "../kernel/Ids.ts"
import type { AccountId, TenantId } from "../kernel/Ids.ts"
import { toDay } from "../kernel/Moment.ts"
import { statement } from "../ledger/Transaction.ts"
import type { Posting, Statement } from "../ledger/Transaction.ts"
import { Writer } from "../ledger/Writer.ts"
import { shownName } from "../mail/Letter.ts"
import { Outbox } from "../mail/Outbox.ts"
import type { TooManyLetters } from "../mail/Problems.ts"
import { notice } from "../notifications/Notification.ts"
import type { Member, Membership, Role } from "./Account.ts"
import { Belonging } from "./Belonging.ts"
import { manages, mayTouch } from "./Organisation.ts"
import type { Invite, InviteId, MemberChange, NewInvite, Organisation, PlanChange, TenantPlan } from "./Organisation.ts"
import {
  AlreadyMember,
  EmailMismatch,
  HomeTenant,
  InsufficientRole,
  InviteNotFound,
  LastOwner,
  MemberNotFound,
  NotAMember,
  TeamFull,
  TooManyTenants
} from "./Problems.ts"
import { Tenants } from "./Tenants.ts"

export interface OrganisationsContract {
  /** A tenant with no credit, whose owner the account is. */
  readonly create: (account: AccountId, name: string) => Effect.Effect<Organisation, TooManyTenants>
  readonly members: (viewer: AccountId, tenant: TenantId) => Effect.Effect<ReadonlyArray<Member>, NotAMember>
  /** Changes role or status of a member. One may always take oneself out (`removed`), unless one is the last owner. */
  readonly change: (
    by: AccountId,
    tenant: TenantId,
    account: AccountId,
    change: MemberChange
  ) => Effect.Effect<
    Member,
    NotAMember | InsufficientRole | MemberNotFound | LastOwner | HomeTenant | TooManyTenants | InvalidRequest
  >
  /** Newest first; for owners and admins. */
  readonly invites: (
    viewer: AccountId,
    tenant: TenantId
  ) => Effect.Effect<ReadonlyArray<Invite>, NotAMember | InsufficientRole>
  /** Mails a link to the address. An open invitation of the same address is replaced: its link works no more. */
  readonly invite: (
    by: AccountId,
    tenant: TenantId,
    draft: NewInvite
  ) => Effect.Effect<Invite, NotAMember | InsufficientRole | AlreadyMember | TooManyLetters>
  readonly revoke: (
    by: AccountId,
    tenant: TenantId,
    invite: InviteId
  ) => Effect.Effect<Invite, NotAMember | InsufficientRole | InviteNotFound>
  /** Joins by the token of a letter. Who has joined by it already is answered the same again. */
  readonly accept: (
    account: AccountId,
    token: string
  ) => Effect.Effect<Membership, InviteNotFound | EmailMismatch | TeamFull | TooManyTenants>
  readonly plan: (viewer: AccountId, tenant: TenantId) => Effect.Effect<TenantPlan, NotAMember>
  readonly setPlan: (
    by: AccountId,
    tenant: TenantId,
    change: PlanChange
  ) => Effect.Effect<TenantPlan, NotAMember | InsufficientRole>
}

/** How many tenants an account may own, its home included, and be a member of. */
const ownedMax = 20
const membershipsMax = 100

/** How long an invitation is open. */
export const inviteLifetime = Duration.days(14)

export class Organisations extends Context.Tag("tollgate/tenants/Organisations")<
  Organisations,
  OrganisationsContract
>() {
  static readonly layer = Layer.suspend(() => Layer.effect(Organisations, make))
}

interface InviteRow {
  readonly id: InviteId
  readonly tenant_id: TenantId
  readonly email: string
  readonly role: Role
  readonly status: "pending" | "accepted" | "revoked"
  readonly invited_by: AccountId
  readonly created_at: number
  readonly expires_at: number
}

type Opens = Extract<Posting, { readonly _tag: "Open" }>

const make = Effect.gen(function* () {
  const sql = yield* SqlClient
  const writer = yield* Writer
  const secret = yield* DeploymentSecret
  const outbox = yield* Outbox
  const tenants = yield* Tenants
  const belonging = yield* Belonging
  const { public_url, service_name } = yield* ServiceInfo

  /** Does it whole, or fails with `Conflict` because somebody was faster. */
  const submit = (statements: ReadonlyArray<Statement>, opens: ReadonlyArray<Opens> = []) =>
    Effect.catchTags(Effect.asVoid(writer.submit({ postings: opens, statements })), {
      AccountExists: Effect.die,
      BooksUnavailable: Effect.die
    })

  const membersOf = (tenant: TenantId, viewer: AccountId) =>
    Effect.flatMap(tenants.members(tenant), (members) => {
      const viewed = members.find(({ account_id, status }) => account_id === viewer && status === "active")
      return viewed === undefined ? new NotAMember() : Effect.succeed({ members, role: viewed.role })
    })

  const managed = Effect.fnUntraced(function* (tenant: TenantId, by: AccountId) {
    const found = yield* membersOf(tenant, by)
    return manages(found.role) ? found : yield* new InsufficientRole({ tenant_id: tenant })
  })

  /** Finds no row unless the account is an active member of such a role when the transaction runs. */
  const stillIs = (account: AccountId, tenant: TenantId, role: Role): Statement =>
    statement(
      sql`UPDATE tollgate_tenants_memberships SET role = role WHERE account_id = ${account} AND tenant_id = ${tenant}
        AND status = 'active' AND role = ${role} RETURNING account_id`,
      1
    )

  /** Finds a row if the account may have one more membership, and if `owner` own one more tenant. */
  const room = (account: AccountId, joins: boolean, owner: boolean) =>
    sql`SELECT 1 FROM (SELECT count(*) AS all_of_them, count(*) FILTER (WHERE role = 'owner') AS owned
        FROM tollgate_tenants_memberships WHERE account_id = ${account} AND status <> 'removed')
      WHERE (${joins ? 0 : 1} OR all_of_them < ${membershipsMax}) AND (${owner ? 0 : 1} OR owned < ${ownedMax})`

  /** To stand in the transaction that makes a membership, or an owner of a member. */
  const stillHasRoom = (account: AccountId, joins: boolean, owner: boolean): Statement =>
    statement(room(account, joins, owner), 1)

  const hasRoom = (account: AccountId, joins: boolean, owner: boolean) =>
    Effect.flatMap(Effect.orDie(room(account, joins, owner)), (rows) =>
      rows.length === 0 ? new TooManyTenants() : Effect.void
    )

  const create: OrganisationsContract["create"] = Effect.fn("Organisations.create")(function* (account, name) {
    yield* hasRoom(account, true, true)
    const now = yield* Clock.currentTimeMillis
    const tenant = Ids.at("ten", now) as TenantId
    const done = submit(
      [
        stillHasRoom(account, true, true),
        statement(
          sql`INSERT INTO tollgate_tenants_tenants (id, name, created_at) VALUES (${tenant}, ${name.trim()}, ${now})`
        ),
        statement(sql`INSERT INTO tollgate_tenants_memberships (account_id, tenant_id, role, status, created_at, updated_at)
          VALUES (${account}, ${tenant}, 'owner', 'active', ${now}, ${now})`)
      ],
      [{ _tag: "Open", account: Ids.billingAccountOf(tenant), tenant }]
    )
    return yield* Effect.matchEffect(done, {
      onFailure: () => create(account, name),
      onSuccess: () =>
        Effect.as(belonging.changed(account), {
          id: tenant,
          name: name.trim(),
          role: "owner",
          created_at: now
        } as const)
    })
  })

  const members = Effect.fn("Organisations.members")(function* (viewer: AccountId, tenant: TenantId) {
    return (yield* membersOf(tenant, viewer)).members
  })

  const change: OrganisationsContract["change"] = Effect.fn("Organisations.change")(
    function* (by, tenant, account, wish) {
      const now = yield* Clock.currentTimeMillis
      const { members, role } = yield* membersOf(tenant, by)
      const member = members.find(({ account_id }) => account_id === account)
      const leaving = by === account && wish.status === "removed" && wish.role === undefined
      if (!leaving && !manages(role)) return yield* new InsufficientRole({ tenant_id: tenant })
      if (member === undefined) return yield* new MemberNotFound()
      if (wish.role === undefined && wish.status === undefined) {
        return yield* new InvalidRequest({
          message: "role or status: one of them must be given",
          field: "role",
          rule: "role or status"
        })
      }
      const after = { ...member, role: wish.role ?? member.role, status: wish.status ?? member.status, updated_at: now }
      if (after.role === member.role && after.status === member.status) return member
      if (!leaving && !(mayTouch(role, member.role) && mayTouch(role, after.role)))
        return yield* new InsufficientRole({ tenant_id: tenant })
      if (member.is_home && after.status !== "active") return yield* new HomeTenant()
      const isOwner = (one: Pick<Member, "role" | "status">) => one.role === "owner" && one.status === "active"
      const owners = members.filter(isOwner).length
      if (isOwner(member) && !isOwner(after) && owners === 1) return yield* new LastOwner()

      const losesOwner = isOwner(member) && !isOwner(after)
      const becomesOwner = member.role !== "owner" && after.role === "owner"
      if (becomesOwner) yield* hasRoom(account, false, true)
      const done = submit([
        stillIs(by, tenant, role),
        stillHasRoom(account, false, becomesOwner),
        statement(
          sql`UPDATE tollgate_tenants_memberships SET role = ${after.role}, status = ${after.status}, updated_at = ${now}
          WHERE account_id = ${account} AND tenant_id = ${tenant} AND role = ${member.role} AND status = ${member.status}
            AND (${losesOwner ? 0 : 1} OR EXISTS (SELECT 1 FROM tollgate_tenants_memberships WHERE tenant_id = ${tenant}
              AND account_id <> ${account} AND role = 'owner' AND status = 'active'))
          RETURNING account_id`,
          1
        )
      ])
      return yield* Effect.matchEffect(done, {
        onFailure: () => change(by, tenant, account, wish),
        onSuccess: () => Effect.as(belonging.changed(account), after)
      })
    }
  )

  const inviteShown = (row: InviteRow, now: number): Invite => ({
    id: row.id,
    tenant_id: row.tenant_id,
    email: row.email,
    role: row.role,
    status: row.status === "pending" && row.expires_at <= now ? "expired" : row.status,
    invited_by: row.invited_by,
    created_at: row.created_at,
    expires_at: row.expires_at
  })

  const columns = sql.literal("id, tenant_id, email, role, status, invited_by, created_at, expires_at")

  const invites = Effect.fn("Organisations.invites")(function* (viewer: AccountId, tenant: TenantId) {
    yield* managed(tenant, viewer)
    const now = yield* Clock.currentTimeMillis
    const rows = yield* Effect.orDie(
      sql<InviteRow>`SELECT ${columns} FROM tollgate_tenants_invites WHERE tenant_id = ${tenant} ORDER BY id DESC LIMIT 500`
    )
    return rows.map((row) => inviteShown(row, now))
  })

  const invite: OrganisationsContract["invite"] = Effect.fn("Organisations.invite")(function* (by, tenant, draft) {
    const { members, role } = yield* managed(tenant, by)
    if (!mayTouch(role, draft.role)) return yield* new InsufficientRole({ tenant_id: tenant })
    if (members.some(({ email }) => email === draft.email)) return yield* new AlreadyMember()
    yield* outbox.room(by, draft.email)
    const now = yield* Clock.currentTimeMillis
    const token = randomBytes(32).toString("hex")
    const row: InviteRow = {
      id: Ids.at("inv", now) as InviteId,
      tenant_id: tenant,
      email: draft.email,
      role: draft.role,
      status: "pending",
      invited_by: by,
      created_at: now,
      expires_at: now + Duration.toMillis(inviteLifetime)
    }
    const tenant_name = (yield* tenants.nameOf(tenant)) ?? tenant
    const inviter = members.find(({ account_id }) => account_id === by)?.name ?? ""
    const [from, team] = [shownName(inviter, "Somebody"), shownName(tenant_name, "a team")]
    const letter = yield* outbox.requiredLetter({
      key: `invite/${row.id}`,
      to: draft.email,
      caused_by: by,
      subject: `${from} invites you to ${team}`,
      text: [
        `${from} invites you to join ${team} on ${service_name} as ${draft.role}.`,
        `Sign in with this address, then accept the invitation:`,
        `${public_url}/invites/${token}`,
        `The link works until ${toDay(row.expires_at)}. If you expect nothing, ignore this letter.`
      ].join("\n\n")
    })
    const invited = (yield* tenants.accountOfEmail(draft.email))?.account_id
    const done = submit([
      stillIs(by, tenant, role),
      statement(sql`UPDATE tollgate_tenants_invites SET status = 'revoked', ended_at = ${now}
        WHERE tenant_id = ${tenant} AND email = ${draft.email} AND status = 'pending'`),
      statement(sql`INSERT INTO tollgate_tenants_invites
        ${sql.insert({ ...row, token_hash: secret.hash("tenant_invite", token), ended_at: null })}`),
      letter,
      ...(invited === undefined
        ? []
        : [
            notice(
              {
                account_id: invited,
                kind: "tenant_invite",
                title: `An invitation to ${tenant_name}`,
                text: `${inviter} invites you to join ${tenant_name} as ${draft.role}. The letter to ${draft.email} holds the link.`,
                data: { tenant_id: tenant, invite_id: row.id }
              },
              now
            )
          ])
    ])
    return yield* Effect.matchEffect(done, {
      onFailure: () => invite(by, tenant, draft),
      onSuccess: () => Effect.as(outbox.wake, inviteShown(row, now))
    })
  })

  const revoke: OrganisationsContract["revoke"] = Effect.fn("Organisations.revoke")(function* (by, tenant, id) {
    const { role } = yield* managed(tenant, by)
    const now = yield* Clock.currentTimeMillis
    const [row] = yield* Effect.orDie(
      sql<InviteRow>`SELECT ${columns} FROM tollgate_tenants_invites WHERE id = ${id} AND tenant_id = ${tenant}`
    )
    if (row === undefined || row.status === "accepted") return yield* new InviteNotFound()
    if (row.status === "revoked") return inviteShown(row, now)
    if (!mayTouch(role, row.role)) return yield* new InsufficientRole({ tenant_id: tenant })
    const done = submit([
      stillIs(by, tenant, role),
      statement(
        sql`UPDATE tollgate_tenants_invites SET status = 'revoked', ended_at = ${now} WHERE id = ${id} AND status = 'pending'
          RETURNING id`,
        1
      )
    ])
    return yield* Effect.matchEffect(done, {
      onFailure: () => revoke(by, tenant, id),
      onSuccess: () => Effect.succeed(inviteShown({ ...row, status: "revoked" }, now))
    })
  })

  const membershipOf = (account: AccountId, tenant: TenantId) =>
    Effect.map(tenants.memberships(account), (all) => all.find(({ tenant_id }) => tenant_id === tenant))

  const accept: OrganisationsContract["accept"] = Effect.fn("Organisations.accept")(function* (account, token) {
    const now = yield* Clock.currentTimeMillis
    const [row] = yield* Effect.orDie(
      sql<InviteRow>`SELECT ${columns} FROM tollgate_tenants_invites WHERE token_hash = ${secret.hash("tenant_invite", token)}`
    )
    if (row === undefined || row.status === "revoked") return yield* new InviteNotFound()
    if ((yield* tenants.verifiedEmail(account)) !== row.email) return yield* new EmailMismatch()
    const current = yield* membershipOf(account, row.tenant_id)
    if (row.status === "accepted") return current ?? (yield* new InviteNotFound())
    if (row.expires_at <= now) return yield* new InviteNotFound()
    // Who was suspended is not let in again by a letter.
    if (current !== undefined && current.status !== "active") return yield* new InviteNotFound()
    const plan = yield* tenants.plan(row.tenant_id)
    const seats = plan.plan === "none" ? Number.MAX_SAFE_INTEGER : plan.seats
    const taken = (yield* tenants.members(row.tenant_id)).length
    if (current === undefined && taken >= seats) return yield* new TeamFull()
    const joins = current === undefined
    const owner = joins && row.role === "owner"
    yield* hasRoom(account, joins, owner)

    const done = submit([
      stillHasRoom(account, joins, owner),
      statement(
        sql`UPDATE tollgate_tenants_invites SET status = 'accepted', ended_at = ${now} WHERE id = ${row.id} AND status = 'pending'
          RETURNING id`,
        1
      ),
      statement(
        sql`INSERT INTO tollgate_tenants_memberships (account_id, tenant_id, role, status, created_at, updated_at)
          SELECT ${account}, ${row.tenant_id}, ${row.role}, 'active', ${now}, ${now}
          WHERE ${joins ? 0 : 1} OR (SELECT count(*) FROM tollgate_tenants_memberships
            WHERE tenant_id = ${row.tenant_id} AND status <> 'removed') < ${seats}
          ON CONFLICT (account_id, tenant_id) DO UPDATE SET role = excluded.role, status = 'active',
            created_at = excluded.created_at, updated_at = excluded.updated_at WHERE tollgate_tenants_memberships.status = 'removed'
          RETURNING account_id`,
        joins ? 1 : 0
      )
    ])
    yield* Effect.matchEffect(done, {
      onFailure: () => accept(account, token),
      onSuccess: () => belonging.changed(account)
    })
    return (yield* membershipOf(account, row.tenant_id)) ?? (yield* new InviteNotFound())
  })

  const planShown = Effect.fnUntraced(function* (tenant: TenantId): Effect.fn.Return<TenantPlan> {
    const { plan, seats, status } = yield* tenants.plan(tenant)
    const seats_taken = (yield* tenants.members(tenant)).length
    return { plan, status: plan === "none" ? "none" : status, seats, seats_taken }
  })

  const plan = Effect.fn("Organisations.plan")(function* (viewer: AccountId, tenant: TenantId) {
    yield* membersOf(tenant, viewer)
    return yield* planShown(tenant)
  })

  const setPlan: OrganisationsContract["setPlan"] = Effect.fn("Organisations.setPlan")(function* (
    by,
    tenant,
    { plan, seats }
  ) {
    yield* managed(tenant, by)
    const before = yield* tenants.plan(tenant)
    // A plan that is past due is the operator's to set right; one that was ended begins anew.
    const status = plan === "none" ? "canceled" : before.status === "past_due" ? "past_due" : "active"
    yield* tenants.setPlan(tenant, { plan, status, ...(seats !== undefined && { seats }) })
    return yield* planShown(tenant)
  })

  return { create, members, change, invites, invite, revoke, accept, plan, setPlan } satisfies OrganisationsContract
})

/** Under another secret the links of invitations lead nowhere: whoever invited invites again. */
export const invitationsEnd: Ending = {
  count: (sql, now) =>
    sql`SELECT count(*) AS n FROM tollgate_tenants_invites WHERE status = 'pending' AND expires_at > ${now}`,
  statements: (sql, now) => [
    statement(sql`UPDATE tollgate_tenants_invites SET status = 'revoked', ended_at = ${now} WHERE status = 'pending'`)
  ],
  told: (n) => `${n} open invitations to organisations are revoked: people are invited again`
}
