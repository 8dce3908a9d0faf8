/**
 * A user in the directory, and the changes that requests describe. All functions here are pure.
 *
 * Where the specification is silent:
 * - The stored attributes are `userName`, `externalId`, `name.givenName`, `name.familyName`, `displayName`, one address and `active`. Others are
 *   accepted and ignored, because directories send everything that their mappings contain.
 * - The stored address is the primary one, otherwise the first of type `work`, otherwise the first, otherwise a `userName` that is an address.
 */
import { Either, Schema } from "effect"
import { toIso } from "../../kernel/Moment.ts"
import { Email } from "../../kernel/Email.ts"
import type { InvalidPath } from "./Problems.ts"
import { InvalidValue } from "./Problems.ts"
import { attributeOf, isBody, textIn, truthIn } from "./Resource.ts"
import type { Body, Operation, Resource } from "./Resource.ts"

export interface User {
  readonly user_name: string
  readonly external_id: string | null
  readonly given_name: string
  readonly family_name: string
  readonly display_name: string
  readonly email: string
  readonly active: boolean
}

export interface StoredUser extends User {
  readonly account_id: string
  readonly created_at: number
  readonly updated_at: number
}

export const schema = "urn:ietf:params:scim:schemas:core:2.0:User"

export const metaOf = (type: "User" | "Group", location: string, row: { created_at: number; updated_at: number }) => ({
  resourceType: type,
  created: toIso(row.created_at),
  lastModified: toIso(row.updated_at),
  location
})

export const shown = (user: StoredUser, base: string): Resource => ({
  schemas: [schema],
  id: user.account_id,
  ...(user.external_id !== null && { externalId: user.external_id }),
  userName: user.user_name,
  name: { givenName: user.given_name, familyName: user.family_name, formatted: nameOf(user) },
  displayName: user.display_name,
  emails: [{ value: user.email, type: "work", primary: true }],
  active: user.active,
  meta: metaOf("User", `${base}/Users/${user.account_id}`, user)
})

/** Returns the account's name: the display name, else the given and family name, else the address without its domain. */
export const nameOf = ({ display_name, email, family_name, given_name }: User): string =>
  (display_name || `${given_name} ${family_name}`.trim() || email.slice(0, email.lastIndexOf("@"))).slice(0, 100)

// ---- a complete user ----------------------------------------------------------------------------------------------------

const addressIn = (emails: unknown): unknown => {
  const all = (Array.isArray(emails) ? emails : []).filter(isBody)
  const found =
    all.find((one) => one["primary"] === true) ?? all.find((one) => one["type"] === "work") ?? all.find(() => true)
  return found?.["value"]
}

const emailOf = (value: string): Either.Either<string, InvalidValue> =>
  Either.mapLeft(
    Schema.decodeEither(Email)(value),
    () => new InvalidValue({ message: "emails must contain an address, or userName must be one" })
  )

/** Reads a user from the body of a POST or PUT. `active` defaults to true. */
export const userIn = (body: Body): Either.Either<User, InvalidValue> =>
  Either.gen(function* () {
    const user_name = yield* textIn("userName", attributeOf(body, "userName"))
    if (user_name === undefined || user_name === "")
      return yield* Either.left(new InvalidValue({ message: "userName is required" }))
    const name = attributeOf(body, "name")
    const part = (key: string) => textIn(`name.${key}`, isBody(name) ? attributeOf(name, key) : undefined)
    const address = yield* textIn("emails.value", addressIn(attributeOf(body, "emails")))
    return {
      user_name: user_name.toLowerCase(),
      external_id: (yield* textIn("externalId", attributeOf(body, "externalId"))) ?? null,
      given_name: (yield* part("givenName")) ?? "",
      family_name: (yield* part("familyName")) ?? "",
      display_name: (yield* textIn("displayName", attributeOf(body, "displayName"))) ?? "",
      email: yield* emailOf(address ?? user_name),
      active: (yield* truthIn("active", attributeOf(body, "active"))) ?? true
    }
  })

// ---- changes ------------------------------------------------------------------------------------------------------------

/** Removes the schema prefix from an attribute path. */
const shortOf = (path: string): string =>
  path.toLowerCase().startsWith(`${schema.toLowerCase()}:`) ? path.slice(schema.length + 1) : path

/** Sets one attribute. Ignores unknown attributes. */
const set = (user: User, path: string, value: unknown): Either.Either<User, InvalidValue> =>
  Either.gen(function* () {
    const text = () => textIn(path, value)
    switch (shortOf(path).toLowerCase()) {
      case "active":
        return { ...user, active: (yield* truthIn("active", value)) ?? false }
      case "username": {
        const name = yield* text()
        if (name === undefined || name === "")
          return yield* Either.left(new InvalidValue({ message: "userName is required" }))
        return { ...user, user_name: name.toLowerCase() }
      }
      case "externalid":
        return { ...user, external_id: (yield* text()) ?? null }
      case "displayname":
        return { ...user, display_name: (yield* text()) ?? "" }
      case "name.givenname":
        return { ...user, given_name: (yield* text()) ?? "" }
      case "name.familyname":
        return { ...user, family_name: (yield* text()) ?? "" }
      case "name": {
        if (!isBody(value)) return user
        return yield* setAll(user, Object.fromEntries(Object.entries(value).map(([key, one]) => [`name.${key}`, one])))
      }
      case "emails": {
        const address = yield* textIn("emails.value", addressIn(Array.isArray(value) ? value : [value]))
        return address === undefined ? user : { ...user, email: yield* emailOf(address) }
      }
      default: {
        if (!/^emails(\[[^\]]*\])?\.value$/i.test(shortOf(path))) return user
        const address = yield* text()
        return address === undefined ? user : { ...user, email: yield* emailOf(address) }
      }
    }
  })

const setAll = (user: User, attributes: Body): Either.Either<User, InvalidValue> =>
  Object.entries(attributes).reduce<Either.Either<User, InvalidValue>>(
    (before, [path, value]) => Either.flatMap(before, (one) => set(one, path, value)),
    Either.right(user)
  )

/**
 * Applies the operations to the user. Removing an optional text clears it, and removing `active` deactivates the user. Removing `userName` fails.
 * Removing `name` or an address has no effect.
 */
export const patched = (
  user: User,
  operations: ReadonlyArray<Operation>
): Either.Either<User, InvalidValue | InvalidPath> =>
  operations.reduce<Either.Either<User, InvalidValue | InvalidPath>>(
    (before, { op, path, value }) =>
      Either.flatMap(before, (one) =>
        path === undefined
          ? setAll(one, isBody(value) ? value : {})
          : set(one, path, op === "remove" ? undefined : value)
      ),
    Either.right(user)
  )
