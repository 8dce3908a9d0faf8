/** Checks that a new run stays within its ancestors' limits, models and tags, and within the maximum depth. */
import { Effect, Schema } from "effect"
import { usdLimit, units } from "../../books/ledger/rules/Budget.ts"
import type { Budget, BudgetUnit } from "../../books/ledger/rules/Budget.ts"
import type { Caller } from "../../kernel/Caller.ts"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import { KeyTags, tagsMax, tagsOf, textOf } from "../../kernel/Labels.ts"
import { toDecimal } from "../../kernel/Money.ts"
import { levelsMax } from "./Run.ts"
import type { NewRun } from "./Run.ts"

/** Returns the level that this caller's new run would have. Fails if that level is too deep. */
export const levelOf = ({ runs }: Pick<Caller, "runs">): Effect.Effect<number, InvalidRequest> => {
  const level = (runs?.length ?? 0) + 1
  return level > levelsMax
    ? InvalidRequest.of("", `runs may be at most ${levelsMax} levels deep; this run would be at level ${level}`)
    : Effect.succeed(level)
}

/** Rejects a limit that exceeds an ancestor's limit. `ancestors` contains the ancestors' budgets, nearest first. */
export const checkLimit = (
  limit: NewRun["limit"],
  ancestors: ReadonlyArray<Budget>,
  now: number
): Effect.Effect<void, InvalidRequest> => {
  for (const unit of units) {
    const own = limit[unit]
    if (own === undefined) continue
    for (const { id, kind, terms } of ancestors) {
      const most = unit === "usd" ? usdLimit(terms, now) : terms.limit[unit]
      if (most === undefined || own <= most) continue
      const holder = kind === "key" ? "the API key" : `the run ${id}`
      return InvalidRequest.of(`limit.${unit}`, `must be at most ${textOfLimit(unit, most)}, the limit of ${holder}`)
    }
  }
  return Effect.void
}

const textOfLimit = (unit: BudgetUnit, most: bigint | number): string =>
  typeof most === "bigint" ? `${toDecimal(most)} USD` : unit === "concurrent" ? `${most} open calls` : `${most} ${unit}`

/** Rejects the first model that the parent may not call. */
export const checkParentsModels = (
  models: NewRun["models"],
  { allowed_models }: Pick<Caller, "allowed_models">
): Effect.Effect<void, InvalidRequest> => {
  const beyond = allowed_models === undefined ? undefined : models?.find((model) => !allowed_models.includes(model))
  return beyond === undefined
    ? Effect.void
    : InvalidRequest.of(
        "models",
        `must be models that the parent may call; the parent may not call ${JSON.stringify(beyond)}`
      )
}

const areTags = Schema.is(KeyTags)

/** Returns the run's and its parent's tags, as serialized in a row. Fails if they conflict or exceed a limit. */
export const tagsWithin = (
  tags: NewRun["tags"],
  { labels }: Pick<Caller, "labels">
): Effect.Effect<string, InvalidRequest> => {
  const given = tagsOf(labels?.tags ?? "")
  if (tags === undefined) return Effect.succeed(textOf(Object.entries(given)))
  for (const [name, value] of Object.entries(tags)) {
    if (Object.hasOwn(given, name) && given[name] !== value)
      return InvalidRequest.of(
        `tags.${name}`,
        `must be ${JSON.stringify(given[name])}, the value that the parent's key has set`
      )
  }
  const all = { ...given, ...tags }
  if (Object.keys(all).length > tagsMax)
    return InvalidRequest.of("tags", `must contain at most ${tagsMax} tags, including those of the parent`)
  return areTags(all)
    ? Effect.succeed(textOf(Object.entries(all)))
    : InvalidRequest.of("tags", "must be shorter; the limit includes the tags of the parent")
}
