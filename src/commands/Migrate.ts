/** `tollgate migrate`: the database brought up to date. */
import { Command } from "@effect/cli"
import { Console, Effect } from "effect"
import * as DataFolder from "../DataFolder.ts"
import * as Engine from "../sql/Engine.ts"
import { upgrade } from "./Database.ts"
import { fromEnvironment } from "./Report.ts"

export const command = Command.make("migrate", {}, () =>
  Effect.gen(function* () {
    const facts = yield* fromEnvironment
    yield* DataFolder.make(facts)
    const found = yield* Engine.look(facts.database, { writing: true })
    yield* DataFolder.keepPrivate(facts)
    const applied = yield* upgrade(facts, found ?? 0)
    yield* Console.log(
      applied.length === 0
        ? `${facts.database.shown} is up to date`
        : `${facts.database.shown}: applied ${applied.map(([id, name]) => `${String(id).padStart(4, "0")}_${name}`).join(", ")}`
    )
  }).pipe(Effect.scoped)
).pipe(Command.withDescription("Bring the database up to date without serving it; serve does so by itself"))
