/** A group in the directory, and the changes that requests describe. All functions here are pure. */
import { Either } from "effect"
import { InvalidPath, InvalidValue } from "./Problems.ts"
import { attributeOf, isBody, textIn } from "./Resource.ts"
import type { Body, Operation, Resource } from "./Resource.ts"
import { metaOf } from "./User.ts"

export interface Group {
  readonly display_name: string
  readonly external_id: string | null
  /** The ids of the group's users. */
  readonly members: ReadonlyArray<string>
}

export interface StoredGroup extends Group {
  readonly id: string
  readonly created_at: number
  readonly updated_at: number
}

export const schema = "urn:ietf:params:scim:schemas:core:2.0:Group"

export const shown = (group: StoredGroup, base: string, withMembers: boolean): Resource => ({
  schemas: [schema],
  id: group.id,
  ...(group.external_id !== null && { externalId: group.external_id }),
  displayName: group.display_name,
  ...(withMembers && {
    members: group.members.map((value) => ({ value, type: "User", $ref: `${base}/Users/${value}` }))
  }),
  meta: metaOf("Group", `${base}/Groups/${group.id}`, group)
})

/** Reads the ids in a value for `members`: one element or an array of elements. An element is an id, or an object with the id as its `value`. */
const membersIn = (value: unknown): Either.Either<ReadonlyArray<string>, InvalidValue> => {
  if (value === undefined || value === null) return Either.right([])
  const ids = (Array.isArray(value) ? value : [value]).map((one: unknown) =>
    isBody(one) ? attributeOf(one, "value") : one
  )
  return ids.every((id) => typeof id === "string")
    ? Either.right([...new Set(ids)])
    : Either.left(new InvalidValue({ message: "members must be an array of objects, each with a value" }))
}

const named = (value: unknown): Either.Either<string, InvalidValue> =>
  Either.flatMap(textIn("displayName", value), (name) =>
    name === undefined || name === ""
      ? Either.left(new InvalidValue({ message: "displayName is required" }))
      : Either.right(name)
  )

export const groupIn = (body: Body): Either.Either<Group, InvalidValue> =>
  Either.gen(function* () {
    return {
      display_name: yield* named(attributeOf(body, "displayName")),
      external_id: (yield* textIn("externalId", attributeOf(body, "externalId"))) ?? null,
      members: yield* membersIn(attributeOf(body, "members"))
    }
  })

const withMembers = (group: Group, op: Operation["op"], ids: ReadonlyArray<string>): Group => {
  if (op === "replace") return { ...group, members: ids }
  const others = group.members.filter((id) => !ids.includes(id))
  return { ...group, members: op === "add" ? [...others, ...ids] : others }
}

const set = (
  group: Group,
  op: Operation["op"],
  path: string,
  value: unknown
): Either.Either<Group, InvalidValue | InvalidPath> =>
  Either.gen(function* () {
    const one = /^members\[\s*value\s+eq\s+"([^"]*)"\s*\]$/i.exec(path)
    if (one !== null) return withMembers(group, op === "remove" ? "remove" : "add", [one[1]!])
    switch (path.toLowerCase()) {
      case "members":
        // Without a value, the operation removes all members.
        if (op === "remove" && (value === undefined || value === null)) return { ...group, members: [] }
        return withMembers(group, op, yield* membersIn(value))
      case "displayname":
        return { ...group, display_name: yield* named(op === "remove" ? undefined : value) }
      case "externalid":
        return { ...group, external_id: op === "remove" ? null : ((yield* textIn(path, value)) ?? null) }
      // Okta repeats the id in a request for a new name.
      case "id":
      case "schemas":
        return group
      default:
        return yield* Either.left(
          new InvalidPath({ message: `the attribute ${path.slice(0, 100)} of a group cannot be changed` })
        )
    }
  })

export const patched = (
  group: Group,
  operations: ReadonlyArray<Operation>
): Either.Either<Group, InvalidValue | InvalidPath> =>
  operations.reduce<Either.Either<Group, InvalidValue | InvalidPath>>(
    (before, { op, path, value }) =>
      Either.flatMap(before, (current) =>
        (path === undefined ? Object.entries(isBody(value) ? value : {}) : [[path, value] as const]).reduce<
          Either.Either<Group, InvalidValue | InvalidPath>
        >((state, [name, one]) => Either.flatMap(state, (at) => set(at, op, name, one)), Either.right(current))
      ),
    Either.right(group)
  )
