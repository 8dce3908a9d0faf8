/**
 * Parses the query of an export.
 *
 * Where the specification is silent:
 * - A period includes `from` and excludes `to`. Both may be dates. A date means the start of its day in UTC, so `to=2026-02-01` excludes 1 February.
 *   The exports of two adjacent months neither overlap nor leave a gap. A `to` before `from` is refused.
 */
import { Either } from "effect"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import type { Window } from "../usage/Window.ts"
import { startOf } from "../usage/Window.ts"
import { exportFormats } from "./Export.ts"
import type { ExportFormat, ExportQuery } from "./Export.ts"

const timeRule = "must be an RFC 3339 date, or date and time"

export const exportOf = (
  query: ExportQuery
): Either.Either<{ readonly format: ExportFormat; readonly window: Window }, InvalidRequest> => {
  const format = exportFormats.find((one) => one === (query.format ?? "csv"))
  if (format === undefined) return refuse("format", `must be ${exportFormats.join(" or ")}`)
  const start = startOf(query.from)
  if (start === undefined) return refuse("from", timeRule)
  const end = startOf(query.to)
  if (end === undefined) return refuse("to", timeRule)
  if (start !== null && end !== null && end < start) return refuse("to", "must not be before from")
  return Either.right({ format, window: { start, end } })
}

const refuse = (field: string, rule: string) => Either.left(new InvalidRequest({ field, rule }))
