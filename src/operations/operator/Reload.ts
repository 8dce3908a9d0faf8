/** Reloads the configuration without a restart. The serving process provides the implementation (`app/Deployment`). */
import { Context, Effect, Schema } from "effect"
import { ReloadRefused } from "./Problems.ts"

export const Reloaded = Schema.Struct({
  changed: Schema.Array(Schema.String).annotations({
    description: "The changed top-level entries of the configuration; empty if nothing changed"
  })
}).annotations({ identifier: "Reloaded" })
export interface Reloaded extends Schema.Schema.Type<typeof Reloaded> {}

const withoutFile: Effect.Effect<Reloaded, ReloadRefused> = Effect.suspend(
  () =>
    new ReloadRefused({
      message: "this service was started without a configuration file, so there is nothing to reload"
    })
)

/** Rereads the configuration and replaces the services. If the configuration is invalid, the effect fails and changes nothing. */
export class Reload extends Context.Reference<Reload>()("tollgate/operator/Reload", {
  defaultValue: () => withoutFile
}) {}
