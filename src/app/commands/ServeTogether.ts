/** `tollgate serve --workers N`: several processes serve requests, and their owner runs the writer and the loops (`app/workers`). */
import { Effect } from "effect"
import type { Scope } from "effect"
import * as Config from "../Config.ts"
import type { ConfigFile } from "../Config.ts"
import type { Deployment } from "../Deployment.ts"
import type { EnvironmentFacts } from "../Environment.ts"
import { prepareFed } from "../../http/server/Listener.ts"
import type { Listening } from "../../http/server/NodeServer.ts"
import * as Owner from "../workers/Owner.ts"
import * as Worker from "../workers/Worker.ts"
import { assembled, server } from "./Process.ts"
import type { Served } from "./Serve.ts"

type Run = (
  facts: EnvironmentFacts,
  file: ConfigFile,
  greet: (served: Served) => Effect.Effect<void>
) => Effect.Effect<never, never, Listening | Deployment | Scope.Scope>

/** The SQLite file. `serve` refuses workers on PostgreSQL. */
const fileOf = ({ database }: EnvironmentFacts): string => {
  if (database.engine !== "sqlite") throw new Error("workers need a SQLite file")
  return database.path
}

/** Runs the owner. `run` announces its address and reloads it. The caller holds the lock on the database. */
export const serveOwner = (facts: EnvironmentFacts, config: string, workers: number, run: Run) =>
  Effect.gen(function* () {
    const text = yield* Config.readText(config)
    const file = yield* Config.parse(text, config)
    const texts = Owner.textsOf(config, text)
    const { port, together, ...parts } = yield* Owner.make(facts, fileOf(facts), workers, texts)
    const layer = assembled(facts, file, { ...parts, port, together, read: texts.read })
    return yield* Effect.scoped(
      Effect.provide(
        run(facts, file, () => Effect.void),
        layer
      )
    )
  })

export const serveWorker = (facts: EnvironmentFacts, config: string, number: number) =>
  Effect.gen(function* () {
    const office = yield* Worker.connect(number)
    const read = Worker.read(office, config)
    prepareFed(office.feed, facts)
    const parts = Worker.make(office, fileOf(facts))
    const layer = assembled(facts, yield* read, { ...parts, port: server(facts), read })
    return yield* Effect.scoped(Effect.provide(Effect.zipRight(Worker.accept(office), Effect.never), layer))
  }).pipe(Effect.annotateLogs("worker", number))
