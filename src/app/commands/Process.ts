/** Runs the service as a process. The layers start from the bottom of the list and stop in the reverse order. */
import { Effect, Layer } from "effect"
import { observers } from "../App.ts"
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

/** Stops first. A call whose client has disconnected has ten seconds from the stop signal, not from the end of the last response. */
const closing = Layer.scopedDiscard(
  Effect.flatMap(Deployment, (deployment) => Effect.addFinalizer(() => deployment.closing))
)

const server = (facts: EnvironmentFacts) =>
  Layer.unwrapEffect(Effect.map(Deployment, ({ serving }) => NodeServer.layerServing(facts, serving)))

/** Assembles the service. A reload uses `read` to read the configuration again. Without `read`, the service never reloads. */
export const service = (facts: EnvironmentFacts, file: ConfigFile, read?: Deployments.Read) =>
  closing.pipe(
    Layer.provideMerge(server(facts)),
    Layer.tap(() => Effect.sync(V8.collectSoon)),
    Layer.provideMerge(Deployments.layer(facts, file, read)),
    Layer.provide(Secret.layer(facts)),
    Layer.provide(observers),
    Layer.provide(Metrics.layer),
    Layer.provide(Readiness.layer),
    Layer.provide(Loops.layer),
    Layer.provide(Layer.provide(Telemetry.layer(file), Config.serviceInfo(facts, file))),
    Layer.provideMerge(Runs.layer),
    Layer.provideMerge(Database.layerAt(facts.database))
  )
