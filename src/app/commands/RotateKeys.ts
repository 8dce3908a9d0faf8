/** `tollgate rotate-keys`: creates a new signing key for access tokens. */
import { Command } from "@effect/cli"
import { Console, Effect, Layer } from "effect"
import * as Secret from "../Secret.ts"
import { SigningKeys } from "../../people/auth/SigningKeys.ts"
import { audited } from "./Audited.ts"
import { database } from "./Database.ts"
import { fromEnvironment } from "./Report.ts"

export const command = Command.make("rotate-keys", {}, () =>
  Effect.gen(function* () {
    const facts = yield* fromEnvironment
    const entry = yield* audited({ action: "rotate_keys" })
    const layer = SigningKeys.layer.pipe(Layer.provide(Secret.layer(facts)), Layer.provideMerge(database(facts)))
    const { kid } = yield* Effect.flatMap(SigningKeys, (keys) => keys.rotate([entry])).pipe(Effect.provide(layer))
    yield* Console.log(
      `created the signing key ${kid}; a running service uses it within an hour, and existing tokens remain valid`
    )
  })
).pipe(Command.withDescription("Create a new signing key for access tokens, as the service does every 30 days"))
