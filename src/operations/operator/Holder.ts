/** Finds the holder of a credential for the operator's routes: a session's token or a management key. */
import { Effect } from "effect"
import { InvalidToken } from "../../people/credentials/Problems.ts"
import type { ManagementKeysContract } from "./ManagementKeys.ts"
import type { OperatorSessionsContract } from "./Sessions.ts"

export const bearerOf = (authorization: string | undefined): string =>
  /^bearer +(\S+) *$/i.exec(authorization ?? "")?.[1] ?? ""

/** Yields the operator that an `Authorization` header identifies, with a management key's scopes. Fails with `InvalidToken`. */
export const holderOf =
  ({ operatorOf }: OperatorSessionsContract, keys: ManagementKeysContract) =>
  (authorization: string | undefined) =>
    Effect.gen(function* () {
      const bearer = bearerOf(authorization)
      if (!keys.isOne(bearer)) return { operator: yield* operatorOf(authorization), scopes: undefined }
      return (yield* keys.holderOf(bearer)) ?? (yield* new InvalidToken())
    })
