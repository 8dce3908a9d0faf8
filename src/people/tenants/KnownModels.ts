/** The names allowed in a key's list of models: the names that can occur in usage records. */
import { Context, Effect } from "effect"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"

/** The known names. `undefined` allows any name, for processes without a configuration. */
export class KnownModels extends Context.Reference<KnownModels>()("tollgate/tenants/KnownModels", {
  defaultValue: (): ReadonlySet<string> | undefined => undefined
}) {}

/**
 * Rejects the first name that no call can contain. A name already in the key's list remains allowed after its model is removed from the
 * configuration.
 */
export const checkModels = (
  known: ReadonlySet<string> | undefined,
  models: ReadonlyArray<string> | null | undefined,
  before: ReadonlyArray<string> = [],
  field = "allowed_models"
): Effect.Effect<void, InvalidRequest> => {
  const unknown = known === undefined ? undefined : models?.find((name) => !known.has(name) && !before.includes(name))
  return unknown === undefined
    ? Effect.void
    : InvalidRequest.of(
        field,
        `must be names from usage records; there is no model, search provider or tool ${JSON.stringify(unknown)}`
      )
}
