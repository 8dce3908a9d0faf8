/** Shows the usage of each limit as a bar. */
import type { ReactNode } from "react"
import type { Schemas } from "../../app/Client.ts"
import { count } from "../../moments.ts"
import { nano } from "../../money.ts"
import { Money } from "../../parts/Money.tsx"
import { budgetTexts as texts } from "../../texts/budgets.ts"

export type Used = Pick<Schemas["Budget"], "limit" | "spent" | "reserved" | "open_calls">

export const units = ["usd", "tokens", "requests", "concurrent"] as const
type CountUnit = Exclude<(typeof units)[number], "usd">

const usedIn = ({ open_calls, reserved, spent }: Used, unit: CountUnit): number =>
  unit === "concurrent" ? open_calls : unit === "requests" ? spent.requests : spent.tokens + reserved.tokens

interface GaugeProps {
  readonly unit: (typeof units)[number]
  readonly used: bigint
  readonly limit: bigint
  readonly children: ReactNode
}

const Gauge = ({ children, limit, unit, used }: GaugeProps) => {
  const share = limit <= 0n ? 1 : Number((used * 1000n) / limit) / 1000
  return (
    <span className="budgets-gauge" data-unit={unit} data-share={share}>
      <span>{children}</span>
      <span className="budgets-bar" aria-hidden>
        <span style={{ width: `${Math.min(100, share * 100)}%` }} data-full={share >= 0.9 || undefined} />
      </span>
    </span>
  )
}

/** `raised` is the sum of all raises of the USD limit, in nano-USD. */
export const Gauges = ({ of, raised = 0n }: { readonly of: Used; readonly raised?: bigint }) => {
  const { limit, reserved, spent } = of
  return (
    <span className="budgets-gauges">
      {units.map((unit) => {
        if (unit === "usd") {
          if (limit.usd === undefined) return null
          const used = nano(spent.usd) + nano(reserved.usd)
          const most = nano(limit.usd) + raised
          return (
            <Gauge key={unit} unit={unit} used={used} limit={most}>
              <Money of={used} /> <span className="quiet">{texts.of}</span> <Money of={most} />
            </Gauge>
          )
        }
        const most = limit[unit]
        if (most === undefined) return null
        const used = usedIn(of, unit)
        return (
          <Gauge key={unit} unit={unit} used={BigInt(used)} limit={BigInt(most)}>
            {count(used)} <span className="quiet">{texts.of}</span> {count(most)}{" "}
            <span className="quiet">{texts.units[unit]}</span>
          </Gauge>
        )
      })}
    </span>
  )
}
