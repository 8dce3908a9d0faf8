/** The `console` section of the configuration file. */
import { Context, Layer, Schema } from "effect"

const Console = Schema.Struct({
  /** Set to `false` to turn the console off. */
  enabled: Schema.optionalWith(Schema.Boolean, { default: () => true })
})

export const fields = { console: Schema.optionalWith(Console, { default: () => ({ enabled: true }) }) }

export class ConsoleSettings extends Context.Tag("tollgate/console/ConsoleSettings")<
  ConsoleSettings,
  typeof Console.Type
>() {}

export const layer = ({ console }: { readonly console: typeof Console.Type }) => Layer.succeed(ConsoleSettings, console)
