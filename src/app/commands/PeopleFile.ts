/**
 * Reads the file for `tollgate people import`: a header line, followed by one person per line.
 *
 * Where the specification is silent:
 * - The first comma, semicolon or tab in the header line is the column separator.
 * - The columns are `email` and `name`, and optionally `external_id`, `team` and `allowance_usd`, in any order. Other columns are rejected.
 * - `team` is the external id of a tenant. If the import creates that tenant, `team` is also its name. A later import, or a PUT by external id,
 *   therefore finds the same team.
 * - Every line is checked before the first person is created. An error contains the invalid cell's line and column.
 */
import { Effect, Either, Schema } from "effect"
import { amountOf } from "../../kernel/Amount.ts"
import { Email } from "../../kernel/Email.ts"
import type { Nano } from "../../kernel/Money.ts"
import type { ConfigProblem } from "../../kernel/Setting.ts"
import { ExternalId } from "../../operations/provisioning/Provision.ts"
import { NewOrganisation } from "../../people/tenants/Organisation.ts"
import * as CommandLine from "./CommandLine.ts"
import * as Csv from "./Csv.ts"
import { refuse } from "./Report.ts"

const columns = ["email", "name", "external_id", "team", "allowance_usd"] as const
type Column = (typeof columns)[number]

export interface Listed {
  readonly line: number
  readonly email: string
  readonly name: string
  readonly external_id: string | undefined
  readonly team: string | undefined
  /** Overrides the command's allowance for this person. */
  readonly allowance_usd: Nano | undefined
}

const peopleMax = 10_000

const decoded = <A>(schema: Schema.Schema<A, string>, text: string): A | undefined =>
  Either.getOrUndefined(Schema.decodeEither(schema)(text))

const headOf = (file: string, head: Csv.Row | undefined): Effect.Effect<ReadonlyArray<Column>, ConfigProblem> => {
  const names = (head?.cells ?? []).map((name) => name.toLowerCase())
  const unknown = names.findIndex((name) => !(columns as ReadonlyArray<string>).includes(name))
  if (unknown !== -1)
    return refuse(
      `${file}, line ${head!.line}, column ${unknown + 1}: "${CommandLine.printable(names[unknown]!, 40)}" is not one of ${columns.join(", ")}`
    )
  const twice = names.findIndex((name, i) => names.indexOf(name) !== i)
  if (twice !== -1) return refuse(`${file}, line ${head!.line}, column ${twice + 1}: ${names[twice]} appears twice`)
  const missing = ["email", "name"].find((name) => !names.includes(name))
  if (missing !== undefined) return refuse(`${file}: the column ${missing} is missing from the first line`)
  return Effect.succeed(names as ReadonlyArray<Column>)
}

/** Reads a row. `Left` contains the invalid cell's column and the rule that the cell breaks. */
const personOf = (
  cellOf: (column: Column) => string
): Either.Either<Omit<Listed, "line">, readonly [Column, string]> => {
  const [email, name] = [decoded(Email, cellOf("email")), decoded(NewOrganisation.fields.name, cellOf("name"))]
  if (email === undefined) return Either.left(["email", "an email address"])
  if (name === undefined) return Either.left(["name", "1 to 100 characters"])
  const [external_id, team, allowance] = [cellOf("external_id"), cellOf("team"), cellOf("allowance_usd")]
  if (external_id !== "" && decoded(ExternalId, external_id) === undefined)
    return Either.left(["external_id", "1 to 200 characters on one line"])
  if (
    team !== "" &&
    (decoded(ExternalId, team) === undefined || decoded(NewOrganisation.fields.name, team) === undefined)
  )
    return Either.left(["team", "1 to 100 characters on one line"])
  const allowance_usd = allowance === "" ? undefined : amountOf(allowance)
  if (allowance !== "" && allowance_usd === undefined)
    return Either.left(["allowance_usd", "an amount above 0, with at most 9 places"])
  return Either.right({ email, name, external_id: external_id || undefined, team: team || undefined, allowance_usd })
}

/** Reads the people in a file. Rejects the entire file if any line is invalid. */
export const read = Effect.fnUntraced(function* (file: string, text: string) {
  const rows = Csv.parse(text)
  if (Csv.isMalformed(rows)) return yield* refuse(`${file}, line ${rows.line}, column ${rows.column}: ${rows.fault}`)
  const head = yield* headOf(file, rows[0])
  if (rows.length < 2) return yield* refuse(`${file}: must list at least one person below the first line`)
  if (rows.length - 1 > peopleMax) return yield* refuse(`${file}: must list at most ${peopleMax} people`)
  const people: Array<Listed> = []
  const seen = new Map<string, number>()
  for (const { cells, line } of rows.slice(1)) {
    if (cells.length !== head.length)
      return yield* refuse(`${file}, line ${line}: ${cells.length} cells instead of ${head.length}`)
    const person = personOf((column) => cells[head.indexOf(column)] ?? "")
    if (Either.isLeft(person)) {
      const [column, rule] = person.left
      return yield* refuse(`${file}, line ${line}, column ${head.indexOf(column) + 1} (${column}): must be ${rule}`)
    }
    const { email, external_id } = person.right
    for (const [column, value] of [
      ["email", email],
      ["external_id", external_id]
    ] as const) {
      const known = value === undefined ? undefined : seen.get(`${column} ${value}`)
      if (known !== undefined)
        return yield* refuse(
          `${file}, line ${line}, column ${head.indexOf(column) + 1} (${column}): this value is already on line ${known}`
        )
      if (value !== undefined) seen.set(`${column} ${value}`, line)
    }
    people.push({ ...person.right, line })
  }
  return people
})
