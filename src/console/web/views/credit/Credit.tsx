/** Credit: the balance in its classes, how it is refilled, and the ledger. */
import { getRouteApi, useNavigate } from "@tanstack/react-router"
import { ArrowLeftRight, Plus } from "lucide-react"
import { useBillingAccount } from "../../app/Asking.ts"
import { nano } from "../../money.ts"
import { Button, ButtonLink } from "../../parts/Button.tsx"
import { Money } from "../../parts/Money.tsx"
import { Page } from "../../parts/Page.tsx"
import { Answer } from "../../parts/States.tsx"
import { texts } from "../../texts.ts"
import { Alerts } from "./Alerts.tsx"
import { AutoReload } from "./AutoReload.tsx"
import { useManages } from "./asking.ts"
import { Arrival, Buy } from "./Buy.tsx"
import { Entries } from "./Entries.tsx"
import { Methods } from "./Methods.tsx"

const route = getRouteApi("/person/credit")

const Balance = () => (
  <Answer of={useBillingAccount()} lines={2}>
    {({ credits, giftable_credits, held_credits, status }) => (
      <section aria-label={texts.credit.balance} className="stack">
        {texts.credit.statuses[status] === undefined ? null : (
          <p className="credit-note credit-note-bad" role="alert">
            {texts.credit.statuses[status]}
          </p>
        )}
        <dl className="credit-figures">
          <div className="credit-figure credit-total">
            <dt>{texts.credit.balance}</dt>
            <dd>
              <Money of={credits} as="exact" focusable />
            </dd>
          </div>
          {(["giftable", "granted", "held"] as const).map((name) => (
            <div key={name} className="credit-figure">
              <dt>{texts.credit.classes[name]}</dt>
              <dd>
                <Money
                  of={
                    name === "giftable"
                      ? giftable_credits
                      : name === "held"
                        ? held_credits
                        : nano(credits) - nano(giftable_credits)
                  }
                  focusable
                />
                <small>{texts.credit.classesHelp[name]}</small>
              </dd>
            </div>
          ))}
        </dl>
      </section>
    )}
  </Answer>
)

export const Credit = () => {
  const { buy } = route.useSearch()
  const navigate = useNavigate()
  const manages = useManages()
  const setBuying = (open: boolean): void =>
    void navigate({ to: "/credit", search: open ? { buy: "yes" } : {}, replace: !open })
  return (
    <Page
      title={texts.credit.title}
      lead={texts.credit.lead}
      actions={
        <>
          <ButtonLink to="/transfers" search={{ send: "yes" }} icon={ArrowLeftRight}>
            {texts.credit.send}
          </ButtonLink>
          {manages === true ? (
            <Button kind="primary" icon={Plus} onPress={() => setBuying(true)}>
              {texts.credit.buy}
            </Button>
          ) : null}
        </>
      }
    >
      <Arrival />
      <Balance />
      {manages === false ? <p className="quiet small">{texts.credit.notManager}</p> : null}
      <div className="credit-pair">
        <AutoReload />
        <Alerts />
      </div>
      <Methods />
      <Entries />
      {buy === "yes" ? <Buy onClose={() => setBuying(false)} /> : null}
    </Page>
  )
}
