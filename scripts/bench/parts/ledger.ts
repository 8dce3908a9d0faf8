// Measures the ledger alone: charges by one caller and by a thousand, compared with raw loops that write the same tables for the same callers.
import { mkdirSync, rmSync } from "node:fs"
import { join } from "node:path"
import { manyCallers } from "../calls.ts"
import type { Round } from "../charges.ts"
import { count, inUnit, print, say, table } from "../frame.ts"
import type { Bench, Part } from "../frame.ts"
import { median } from "../numbers.ts"
import { ask, cpu, startPart, stop } from "../processes.ts"

const sides = [
  { name: "raw, one caller", side: "raw", callers: 1 },
  { name: "ours, one caller", side: "ours", callers: 1 },
  { name: "raw, a thousand callers", side: "raw", callers: manyCallers },
  { name: "ours, a thousand callers", side: "ours", callers: manyCallers }
] as const

const run = async ({ cores, directory, options, results }: Bench): Promise<void> => {
  const processes = await Promise.all(
    sides.map(async (side, i) => {
      const folder = join(directory, `ledger-${i}`)
      mkdirSync(folder)
      const child = startPart(cores.served, "charges.ts", [side.side, folder, String(side.callers)])
      await ask(child)
      return { ...side, folder, child, rates: [] as Array<number>, costs: [] as Array<number> }
    })
  )
  for (const { child } of processes) await ask<Round>(child, { seconds: options.warmup / 2 })
  for (let round = 1; round <= options.rounds; round++) {
    for (const { child, costs, rates } of round % 2 === 1 ? processes : processes.toReversed()) {
      const before = cpu(child.pid!)
      const { rate } = await ask<Round>(child, { seconds: options.seconds })
      rates.push(rate)
      costs.push((cpu(child.pid!) - before) / (rate * options.seconds))
    }
    const line = processes.map(({ name, rates }) => `${name} ${Math.round(rates.at(-1)!)}`)
    say(`ledger: round ${round} of ${options.rounds}: ${line.join(", ")}`)
  }
  for (const { child, folder, name, rates } of processes) {
    results.measurements.push({ part: "ledger", contender: name, rates })
    await stop(child)
    rmSync(folder, { recursive: true, force: true })
  }

  const [rawOne, oursOne, rawMany, oursMany] = processes.map(({ rates }) => median(rates)) as [
    number,
    number,
    number,
    number
  ]
  const row = (i: number, title: string, raw: number, one: number) => {
    const { costs, rates } = processes[i]!
    const rate = median(rates)
    return [title, count(rate), median(costs).toFixed(1), inUnit(rate / raw, "x"), inUnit(rate / one, "x")]
  }
  print(
    "\nCharges at the ledger, reserve then settle, durable, 64 at a time; 1,000 Zipf-distributed callers, four models each\n"
  )
  print(
    table([
      ["side", "charges/s", "CPU µs", "relative to raw", "relative to one caller"],
      row(0, "one caller: raw better-sqlite3, groups of 64", rawOne, rawOne),
      row(1, "one caller: our ledger, 64 fibers", rawOne, oursOne),
      row(2, "a thousand: raw better-sqlite3, groups of 64", rawMany, rawOne),
      row(3, "a thousand: our ledger, 64 fibers", rawMany, oursOne)
    ])
  )
  results.reach({
    what: "8 ledger, one caller: rate relative to the raw loop",
    measured: oursOne / rawOne,
    unit: "x",
    least: 0.85
  })
  results.reach({
    what: "7 ledger, 1,000 callers: rate relative to the raw loop",
    measured: oursMany / rawMany,
    unit: "x",
    least: 0.7
  })
  results.reach({
    what: "7 ledger, 1,000 callers: rate relative to one caller",
    measured: oursMany / oursOne,
    unit: "x",
    least: 0.6
  })
}

export const ledger: Part = { name: "ledger", about: "charges by one caller and by a thousand, without HTTP", run }
