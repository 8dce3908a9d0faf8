/** Manages the directory's groups. The rules in `registration.groups` for the provider `scim` map them to teams. */
import { Clock, Effect } from "effect"
import * as Statements from "../../books/ledger/write/Statements.ts"
import { statement } from "../../books/ledger/rules/Transaction.ts"
import type { Statement } from "../../books/ledger/rules/Transaction.ts"
import * as Ids from "../../kernel/Ids.ts"
import type { AccountId } from "../../kernel/Ids.ts"
import { groupIn, patched } from "./Group.ts"
import type { Group, StoredGroup } from "./Group.ts"
import { InvalidValue, NotUnique, ResourceNotFound } from "./Problems.ts"
import { filterIn, operationsIn, pageIn } from "./Resource.ts"
import type { Body, ListQuery } from "./Resource.ts"
import type { Parts, ScimContract } from "./Scim.ts"
import { directory } from "./Settings.ts"

type GroupsContract = ScimContract["groups"]

export const make = (parts: Parts): GroupsContract => ({
  list: listing(parts),
  find: finding(parts),
  create: creating(parts),
  replace: (id, body) => Effect.flatMap(groupIn(body), (wanted) => changing(parts)(id, () => Effect.succeed(wanted))),
  patch: (id, body) => changing(parts)(id, (group) => patchedBy(group, body)),
  remove: removing(parts)
})

const patchedBy = (group: Group, body: Body) => Effect.flatMap(operationsIn(body), (all) => patched(group, all))

// ---- reading ------------------------------------------------------------------------------------------------------------

type Row = Omit<StoredGroup, "members">

const withMembers = ({ sql }: Parts, row: Row) =>
  Effect.map(
    Effect.orDie(
      sql<{
        account_id: string
      }>`SELECT account_id FROM tollgate_scim_members WHERE group_id = ${row.id} ORDER BY account_id`
    ),
    (members): StoredGroup => ({ ...row, members: members.map(({ account_id }) => account_id) })
  )

const finding = (parts: Parts): GroupsContract["find"] =>
  Effect.fn("Scim.groups.find")(function* (id) {
    const [row] = yield* Effect.orDie(
      parts.sql<Row>`SELECT id, display_name, external_id, created_at, updated_at FROM tollgate_scim_groups WHERE id = ${id}`
    )
    return row === undefined ? yield* new ResourceNotFound() : yield* withMembers(parts, row)
  })

const listing = (parts: Parts): GroupsContract["list"] =>
  Effect.fn("Scim.groups.list")(function* (query: ListQuery) {
    const { sql } = parts
    const filter = yield* filterIn(query.filter, ["displayname", "externalid", "id"])
    const { limit, start } = pageIn(query)
    const which =
      filter === undefined
        ? sql`1 = 1`
        : filter.attribute === "displayname"
          ? sql`display_name = ${filter.value}`
          : filter.attribute === "id"
            ? sql`id = ${filter.value}`
            : sql`external_id = ${filter.value}`
    const [all] = yield* Effect.orDie(sql<{ n: number }>`SELECT count(*) AS n FROM tollgate_scim_groups WHERE ${which}`)
    const rows = yield* Effect.orDie(
      sql<Row>`SELECT id, display_name, external_id, created_at, updated_at FROM tollgate_scim_groups WHERE ${which}
        ORDER BY id LIMIT ${limit} OFFSET ${start - 1}`
    )
    return { total: all?.n ?? 0, start, found: yield* Effect.forEach(rows, (row) => withMembers(parts, row)) }
  })

// ---- writing ------------------------------------------------------------------------------------------------------------

/** Writes only the differences, so that concurrent changes to other members survive. */
const membersChanged = (
  { sql }: Parts,
  id: string,
  before: ReadonlyArray<string>,
  after: ReadonlyArray<string>
): ReadonlyArray<Statement> => [
  ...before
    .filter((one) => !after.includes(one))
    .map((one) => statement(sql`DELETE FROM tollgate_scim_members WHERE group_id = ${id} AND account_id = ${one}`)),
  ...after
    .filter((one) => !before.includes(one))
    .map((one) =>
      statement(
        sql`INSERT INTO tollgate_scim_members (group_id, account_id) VALUES (${id}, ${one}) ON CONFLICT DO NOTHING`
      )
    )
]

/** Rejects members that are not users in the directory. */
const known = Effect.fnUntraced(function* ({ sql }: Parts, members: ReadonlyArray<string>) {
  for (const id of members) {
    const [found] = yield* Effect.orDie(
      sql`SELECT 1 FROM tollgate_scim_users WHERE account_id = ${id} AND deleted_at IS NULL`
    )
    if (found === undefined)
      return yield* new InvalidValue({ message: `members: there is no user ${id.slice(0, 100)}` })
  }
})

/** Updates the teams of people after their groups have changed. The update is idempotent, so an interrupted request can be repeated. */
const applied = Effect.fnUntraced(function* ({ registration, sql }: Parts, accounts: Iterable<string>) {
  for (const account of accounts) {
    const rows = yield* Effect.orDie(
      sql<{ display_name: string }>`SELECT g.display_name FROM tollgate_scim_members m
        JOIN tollgate_scim_groups g ON g.id = m.group_id WHERE m.account_id = ${account} ORDER BY g.display_name`
    )
    const groups = rows.map(({ display_name }) => display_name)
    yield* registration.applyGroups(account as AccountId, { provider: directory, groups })
  }
})

const creating = (parts: Parts): GroupsContract["create"] =>
  Effect.fn("Scim.groups.create")(function* (body) {
    const { sql, writer } = parts
    const { display_name, external_id, members } = yield* groupIn(body)
    yield* known(parts, members)
    const now = yield* Clock.currentTimeMillis
    const id = Ids.at("scg", now)
    const row = { id, display_name, external_id, created_at: now, updated_at: now }
    const stored = yield* Statements.tryWrite(
      writer,
      statement(sql`INSERT INTO tollgate_scim_groups ${sql.insert(row)} ON CONFLICT DO NOTHING RETURNING id`, 1),
      ...membersChanged(parts, id, [], members)
    )
    if (!stored) return yield* new NotUnique()
    yield* applied(parts, members)
    return { ...row, members }
  })

const changing = (parts: Parts) =>
  Effect.fn("Scim.groups.change")(function* <E>(id: string, change: (group: Group) => Effect.Effect<Group, E>) {
    const { sql, writer } = parts
    const before = yield* finding(parts)(id)
    const { display_name, external_id, members } = yield* change(before)
    yield* known(
      parts,
      members.filter((one) => !before.members.includes(one))
    )
    const now = yield* Clock.currentTimeMillis
    const changed = yield* Statements.tryWrite(
      writer,
      statement(
        sql`UPDATE tollgate_scim_groups SET ${sql.update({ display_name, external_id, updated_at: now })}
          WHERE id = ${id} AND NOT EXISTS (SELECT 1 FROM tollgate_scim_groups o
            WHERE o.display_name = ${display_name} AND o.id <> ${id}) RETURNING id`,
        1
      ),
      ...membersChanged(parts, id, before.members, members)
    )
    if (!changed) return yield* new NotUnique()
    yield* applied(parts, new Set([...before.members, ...members]))
    return { ...before, display_name, external_id, members, updated_at: now }
  })

const removing = (parts: Parts): GroupsContract["remove"] =>
  Effect.fn("Scim.groups.remove")(function* (id) {
    const { sql, writer } = parts
    const { members } = yield* finding(parts)(id)
    yield* Statements.write(
      writer,
      statement(sql`DELETE FROM tollgate_scim_members WHERE group_id = ${id}`),
      statement(sql`DELETE FROM tollgate_scim_groups WHERE id = ${id}`)
    )
    yield* applied(parts, members)
  })
