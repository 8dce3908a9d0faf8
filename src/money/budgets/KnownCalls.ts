/** The models and providers that a budget's conditions may refer to: those that can occur in usage records. */
import { Context, Effect } from "effect"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"

export interface CallNames {
  readonly models: ReadonlySet<string>
  readonly providers: ReadonlySet<string>
  readonly capabilities: ReadonlySet<string>
}

/** The known names. `undefined` allows any name; this is the default for processes without a configuration. */
export class KnownCalls extends Context.Reference<KnownCalls>()("tollgate/budgets/KnownCalls", {
  defaultValue: (): CallNames | undefined => undefined
}) {}

interface Conditions {
  readonly model?: string | undefined
  readonly provider?: string | undefined
  readonly capability?: string | undefined
}

/** Rejects the first name that cannot occur in a usage record. */
export const checkNames = (
  known: CallNames | undefined,
  { capability, model, provider }: Conditions
): Effect.Effect<void, InvalidRequest> => {
  if (known === undefined) return Effect.void
  if (model !== undefined && !known.models.has(model)) return unknown("model", model)
  if (provider !== undefined && !known.providers.has(provider)) return unknown("provider", provider)
  if (capability !== undefined && !known.capabilities.has(capability))
    return InvalidRequest.of("applies_to.capability", `must be one of ${[...known.capabilities].join(", ")}`)
  return Effect.void
}

const unknown = (kind: "model" | "provider", name: string) =>
  InvalidRequest.of(
    `applies_to.${kind}`,
    `must be a name from usage records; there is no ${kind} ${JSON.stringify(name.slice(0, 100))} here`
  )
