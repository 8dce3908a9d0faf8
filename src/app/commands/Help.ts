/** `tollgate help`: lists the guides or prints one of them. */
import { Args, Command } from "@effect/cli"
import { Console, Effect, Option } from "effect"
import { guides, isGuide, textOf } from "../guides/Guides.ts"
import { table } from "./CommandLine.ts"
import { refuse } from "./Report.ts"

const guide = Args.text({ name: "guide" }).pipe(Args.withDescription("the guide to print"), Args.optional)

export const command = Command.make("help", { guide }, ({ guide }) =>
  Effect.gen(function* () {
    const name = Option.getOrUndefined(guide)
    if (name === undefined) {
      yield* Console.log(table(Object.entries(guides).map(([guide, summary]) => [`tollgate help ${guide}`, summary])))
      return yield* Console.log("\nTo list the commands, run tollgate --help.")
    }
    if (!isGuide(name))
      return yield* refuse(`there is no guide ${name}; the guides are ${Object.keys(guides).join(", ")}`)
    yield* Console.log(textOf(name).trimEnd())
  })
).pipe(
  Command.withDescription(
    "Print a guide: first-hour, company, clients, configure, operate, postgres, embed, your-ledger, errors"
  )
)
