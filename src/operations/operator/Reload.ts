/** Taking a changed configuration without a restart. The process that serves provides it (`app/Deployment`). */
import { Context, Effect, Schema } from "effect"
import { ReloadRefused } from "./Problems.ts"

export const Reloaded = Schema.Struct({
  changed: Schema.Array(Schema.String).annotations({
    description: "The changed entries on the top level of the configuration; none if it is as it was"
  })
}).annotations({ identifier: "Reloaded" })
export interface Reloaded extends Schema.Schema.Type<typeof Reloaded> {}

const withoutFile: Effect.Effect<Reloaded, ReloadRefused> = Effect.suspend(
  () =>
    new ReloadRefused({ message: "this service was started without a configuration file: there is nothing to reload" })
)

/** Reads the configuration again and replaces the services. Fails, and changes nothing, if the configuration is wrong. */
export class Reload extends Context.Reference<Reload>()("tollgate/operator/Reload", {
  defaultValue: () => withoutFile
}) {}
