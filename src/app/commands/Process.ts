/** Runs the service as a process. The layers start from the bottom of the list and stop in the reverse order. */
import type { SqlClient } from "@effect/sql/SqlClient"
import { Effect, Layer } from "effect"
import { observers } from "../App.ts"
import type { Writer } from "../../books/ledger/write/Writer.ts"
import * as Config from "../Config.ts"
import type { ConfigFile } from "../Config.ts"
import { Deployment } from "../Deployment.ts"
import * as Deployments from "../Deployment.ts"
import * as Database from "../entry/database.ts"
import type { EnvironmentFacts } from "../Environment.ts"
import * as NodeServer from "../../http/server/NodeServer.ts"
import { Loops } from "../../operations/ops/Loops.ts"
import { Metrics } from "../../operations/ops/Metrics.ts"
import { Readiness } from "../../operations/ops/Readiness.ts"
import * as Telemetry from "../../operations/ops/Telemetry.ts"
import * as Secret from "../Secret.ts"
import { Runs } from "../../storage/engine/Runs.ts"
import * as V8 from "../V8.ts"

/** Stops first. The ten seconds for calls with disconnected clients therefore begin at the stop signal, not at the end of the last response. */
const closing = Layer.scopedDiscard(
  Effect.flatMap(Deployment, (deployment) => Effect.addFinalizer(() => deployment.closing))
)

export const server = (facts: EnvironmentFacts) =>
  Layer.unwrapEffect(Effect.map(Deployment, ({ serving }) => NodeServer.layerServing(facts, serving)))

/** Assembles the service. A reload uses `read` to read the configuration again. Without `read`, the service never reloads. */
export const service = (facts: EnvironmentFacts, file: ConfigFile, read?: Deployments.Read) =>
  assembled(facts, file, { database: Database.layerAt(facts.database), port: server(facts), read })

/** The parts that differ between a single process, an owner and a worker (`app/workers`). */
interface Parts<Out, E, PortE> {
  readonly database: Layer.Layer<Out | SqlClient | Writer, E>
  readonly port: Layer.Layer<NodeServer.Listening, PortE, Deployment>
  readonly read?: Deployments.Read | undefined
  readonly together?: Deployments.Together
}

/** Assembles a single process, an owner or a worker from its parts. */
export const assembled = <Out, E, PortE>(
  facts: EnvironmentFacts,
  file: ConfigFile,
  { database, port, read, together }: Parts<Out, E, PortE>
) =>
  closing.pipe(
    Layer.provideMerge(port),
    Layer.tap(() => Effect.sync(V8.collectSoon)),
    Layer.provideMerge(Deployments.layer(facts, file, read, together)),
    Layer.provide(Secret.layer(facts)),
    Layer.provide(observers),
    Layer.provide(Metrics.layer),
    Layer.provide(Readiness.layer),
    Layer.provide(Loops.layer),
    Layer.provide(Layer.provide(Telemetry.layer(file), Config.serviceInfo(facts, file))),
    Layer.provideMerge(Runs.layer),
    Layer.provideMerge(database)
  )
