/** Manages the directory's users. The directory controls the name and activation of each user's account. */
import { Clock, Effect } from "effect"
import * as Statements from "../../books/ledger/write/Statements.ts"
import { statement } from "../../books/ledger/rules/Transaction.ts"
import type { AccountId } from "../../kernel/Ids.ts"
import { removingAll } from "../../people/passkeys/Removal.ts"
import * as Audit from "../operator/Audit.ts"
import { by } from "./Actor.ts"
import { NotUnique, ResourceNotFound } from "./Problems.ts"
import { filterIn, operationsIn, pageIn } from "./Resource.ts"
import type { Body, ListQuery } from "./Resource.ts"
import type { Parts, ScimContract } from "./Scim.ts"
import { directory } from "./Settings.ts"
import { nameOf, patched, userIn } from "./User.ts"
import type { StoredUser, User } from "./User.ts"

type UsersContract = ScimContract["users"]

export const make = (parts: Parts): UsersContract => ({
  list: listing(parts),
  find: finding(parts),
  create: creating(parts),
  replace: (id, body) => Effect.flatMap(userIn(body), (wanted) => changing(parts)(id, () => Effect.succeed(wanted))),
  patch: (id, body) => changing(parts)(id, (user) => patchedBy(user, body)),
  remove: removing(parts)
})

const patchedBy = (user: User, body: Body) => Effect.flatMap(operationsIn(body), (all) => patched(user, all))

// ---- reading ------------------------------------------------------------------------------------------------------------

type Row = Omit<StoredUser, "active">

/** Adds whether the user is active. A person that the operator suspended is also inactive. */
const withState = ({ tenants }: Parts, row: Row) =>
  Effect.map(tenants.isSuspended(row.account_id as AccountId), (suspended): StoredUser => ({
    ...row,
    active: !suspended
  }))

/** Returns whether the directory admits the person, regardless of the operator's suspension. Changes are computed from this state. */
const isActivated = ({ tenants }: Parts, account: AccountId) =>
  Effect.map(tenants.suspendersOf(account), (all) => !all.includes("directory"))

const columns =
  "account_id, user_name, external_id, given_name, family_name, display_name, email, created_at, updated_at"

const rowOf = ({ sql }: Parts, id: string): Effect.Effect<Row | undefined> =>
  Effect.map(
    Effect.orDie(
      sql<Row>`SELECT ${sql.literal(columns)} FROM tollgate_scim_users WHERE account_id = ${id} AND deleted_at IS NULL`
    ),
    ([row]) => row
  )

const finding = (parts: Parts): UsersContract["find"] =>
  Effect.fn("Scim.users.find")(function* (id) {
    const row = yield* rowOf(parts, id)
    return row === undefined ? yield* new ResourceNotFound() : yield* withState(parts, row)
  })

const listing = (parts: Parts): UsersContract["list"] =>
  Effect.fn("Scim.users.list")(function* (query: ListQuery) {
    const { sql } = parts
    const filter = yield* filterIn(query.filter, ["username", "externalid", "id"])
    const { limit, start } = pageIn(query)
    const which =
      filter === undefined
        ? sql`deleted_at IS NULL`
        : filter.attribute === "username"
          ? sql`deleted_at IS NULL AND user_name = ${filter.value.toLowerCase()}`
          : filter.attribute === "id"
            ? sql`deleted_at IS NULL AND account_id = ${filter.value}`
            : sql`deleted_at IS NULL AND external_id = ${filter.value}`
    const [all] = yield* Effect.orDie(sql<{ n: number }>`SELECT count(*) AS n FROM tollgate_scim_users WHERE ${which}`)
    const rows = yield* Effect.orDie(
      sql<Row>`SELECT ${sql.literal(columns)} FROM tollgate_scim_users WHERE ${which}
        ORDER BY account_id LIMIT ${limit} OFFSET ${start - 1}`
    )
    return { total: all?.n ?? 0, start, found: yield* Effect.forEach(rows, (row) => withState(parts, row)) }
  })

// ---- writing ------------------------------------------------------------------------------------------------------------

const setActive = ({ acts }: Parts, account: AccountId, active: boolean) =>
  Effect.catchTag(
    acts.setPerson(by, account, active ? "active" : "suspended", {
      reason: "set by the directory",
      suspender: "directory"
    }),
    "AccountNotFound",
    Effect.die
  )

const creating = (parts: Parts): UsersContract["create"] =>
  Effect.fn("Scim.users.create")(function* (body) {
    const { provisioning, sql, writer } = parts
    const user = yield* userIn(body)
    const { user_name } = user
    const [taken] = yield* Effect.orDie(
      sql`SELECT 1 FROM tollgate_scim_users WHERE user_name = ${user_name} AND deleted_at IS NULL`
    )
    if (taken !== undefined) return yield* new NotUnique()
    const person = yield* provisioning.people.create(by, { email: user.email, name: nameOf(user) }).pipe(
      // Without an allowance and a team, these errors cannot occur.
      Effect.catchTags({
        BalanceBeyondBooks: Effect.die,
        TenantClosed: Effect.die,
        ExternalIdNotFound: Effect.die,
        TeamFull: Effect.die,
        TooManyTenants: Effect.die
      })
    )
    const account_id = person.id
    const now = yield* Clock.currentTimeMillis
    const { active, ...attributes } = user
    const row = { account_id, ...attributes, created_at: now, updated_at: now }
    const stored = yield* Statements.tryWrite(
      writer,
      // The directory removed this person earlier and is now restoring them.
      statement(sql`DELETE FROM tollgate_scim_users WHERE account_id = ${account_id} AND deleted_at IS NOT NULL`),
      statement(sql`INSERT INTO tollgate_scim_users ${sql.insert(row)} ON CONFLICT DO NOTHING RETURNING account_id`, 1)
    )
    if (!stored) return yield* new NotUnique()
    yield* setActive(parts, account_id, active)
    return yield* withState(parts, row)
  })

const changing = (parts: Parts) =>
  Effect.fn("Scim.users.change")(function* <E>(id: string, change: (user: User) => Effect.Effect<User, E>) {
    const { sql, tenants, writer } = parts
    const found = yield* finding(parts)(id)
    const account = found.account_id as AccountId
    const before = { ...found, active: yield* isActivated(parts, account) }
    const { active, display_name, email, external_id, family_name, given_name, user_name } = yield* change(before)
    const now = yield* Clock.currentTimeMillis
    const row = { user_name, external_id, given_name, family_name, display_name, email, updated_at: now }
    const changed = yield* Statements.tryWrite(
      writer,
      statement(
        sql`UPDATE tollgate_scim_users SET ${sql.update(row)} WHERE account_id = ${id} AND deleted_at IS NULL
          AND NOT EXISTS (SELECT 1 FROM tollgate_scim_users o
            WHERE o.user_name = ${user_name} AND o.account_id <> ${id} AND o.deleted_at IS NULL)
          RETURNING account_id`,
        1
      )
    )
    if (!changed) return yield* new NotUnique()
    const after: StoredUser = { ...before, ...row, active }
    const name = nameOf(after)
    if (name !== nameOf(before)) {
      const entry = Audit.entry(by, { action: "person.rename", account_id: account, details: { name } }, now)
      yield* tenants.renameAccount(account, name, [entry])
    }
    if (active !== before.active) yield* setActive(parts, account, active)
    return yield* withState(parts, after)
  })

/**
 * Removes a user. Suspends the person first, so that no key is used or created during the removal. If a removal is interrupted, the next request
 * completes it.
 */
const removing = (parts: Parts): UsersContract["remove"] =>
  Effect.fn("Scim.users.remove")(function* (id) {
    const { acts, registration, sql, tenancy, writer } = parts
    const account = (yield* finding(parts)(id)).account_id as AccountId
    yield* setActive(parts, account, false)
    for (;;) {
      const keys = yield* tenancy.keysOfAccount(account, 200)
      for (const key of keys) {
        const revoked = acts.revokeKey(by, key.id, { reason: "the directory removed the person" })
        yield* Effect.catchTag(revoked, "ApplicationNotFound", () => Effect.void)
      }
      if (keys.length < 200) break
    }
    const now = yield* Clock.currentTimeMillis
    yield* Statements.write(
      writer,
      ...removingAll(sql, account),
      statement(sql`DELETE FROM tollgate_scim_members WHERE account_id = ${id}`),
      statement(sql`UPDATE tollgate_scim_users SET deleted_at = ${now} WHERE account_id = ${id} AND deleted_at IS NULL`)
    )
    yield* registration.applyGroups(account, { provider: directory, groups: [] })
  })
