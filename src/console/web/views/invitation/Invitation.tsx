/** The target of invitation emails. It offers credit from another user or membership in a team, and requires no account. */
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query"
import { useNavigate } from "@tanstack/react-router"
import { useEffect } from "react"
import type { ReactNode } from "react"
import { useMe } from "../../app/Asking.ts"
import { Mark } from "../../app/Brand.tsx"
import { api, publicApi, resultOf } from "../../app/Client.ts"
import { personSession } from "../../app/PersonSession.ts"
import { useProviders } from "../../app/Providers.ts"
import { Refusal } from "../../app/Refusal.ts"
import { useSession } from "../../app/Session.ts"
import { switchTo } from "../../app/Switching.ts"
import { day } from "../../moments.ts"
import { exact } from "../../money.ts"
import { Button, ButtonLink } from "../../parts/Button.tsx"
import { Money } from "../../parts/Money.tsx"
import { advice, Answer, Empty, Failed, Loading } from "../../parts/States.tsx"
import { toast } from "../../parts/Toasts.tsx"
import { texts } from "../../texts.ts"
import { invitationTexts } from "../../texts/invitation.ts"
import { teamTexts } from "../../texts/team.ts"
import { transfersTexts } from "../../texts/transfers.ts"
import { Ways } from "../signin/Ways.tsx"
import { forget, opened } from "./token.ts"

const isMismatch = (error: unknown): boolean => error instanceof Refusal && error.code === "email_mismatch"

const SignedInAs = () => {
  const { data: me } = useMe()
  const queries = useQueryClient()
  const leave = async (): Promise<void> => {
    try {
      await personSession.end()
      queries.clear()
    } catch (error) {
      toast(advice(error), "bad")
    }
  }
  return (
    <div className="stack invitation-who">
      <p className="quiet small">{me === undefined ? "" : invitationTexts.signedIn(me.account.email)}</p>
      <div>
        <Button kind="ghost" onPress={() => void leave()}>
          {invitationTexts.otherAddress}
        </Button>
      </div>
    </div>
  )
}

/** Shows `children` to signed-in users, and the sign-in methods to everyone else. */
const Signed = ({ children }: { readonly children: ReactNode }) => {
  const state = useSession(personSession)
  useEffect(() => {
    if (state.kind === "unknown") void personSession.renew()
  }, [state.kind])
  switch (state.kind) {
    case "open":
      return (
        <>
          {children}
          <SignedInAs />
        </>
      )
    case "none":
      return <Ways to="invitation" />
    case "unreachable":
      return <Failed error={state.error} title={texts.failed.reached} retry={() => void personSession.renew()} />
    default:
      return <Loading lines={2} />
  }
}

const Problem = ({ error }: { readonly error: unknown }) =>
  error === null ? null : (
    <p role="alert" className="field-error">
      {isMismatch(error) ? invitationTexts.mismatch : advice(error)}
    </p>
  )

const AcceptTransfer = ({ amount, token }: { readonly amount: number | string; readonly token: string }) => {
  const navigate = useNavigate()
  const queries = useQueryClient()
  const accept = useMutation({
    mutationFn: async () => {
      const { id } = await resultOf(api.POST("/v1/transfer-invites/{token}/attach", { params: { path: { token } } }))
      return resultOf(api.POST("/v1/transfers/{transfer_id}/accept", { params: { path: { transfer_id: id } } }))
    },
    onSuccess: async ({ id }) => {
      forget()
      await queries.invalidateQueries()
      toast(transfersTexts.accepted(exact(amount)))
      await navigate({ to: "/transfers", search: { transfer: id } })
    }
  })
  return (
    <div className="stack">
      <div className="row wrap">
        <Button kind="primary" isPending={accept.isPending} onPress={() => accept.mutate()}>
          {invitationTexts.acceptAmount(exact(amount))}
        </Button>
        <ButtonLink to="/transfers">{invitationTexts.later}</ButtonLink>
      </div>
      <Problem error={accept.error} />
    </div>
  )
}

const Missing = () => (
  <>
    <Empty title={invitationTexts.missing}>{invitationTexts.missingText}</Empty>
    <div>
      <ButtonLink to="/">{invitationTexts.home}</ButtonLink>
    </div>
  </>
)

const TransferInvitation = ({ token }: { readonly token: string }) => {
  const preview = useQuery({
    queryKey: ["invitation"],
    queryFn: () => resultOf(publicApi.GET("/v1/transfer-invites/{token}", { params: { path: { token } } })),
    gcTime: 0
  })
  if (preview.error instanceof Refusal && preview.error.status === 404) return <Missing />
  return (
    <Answer of={preview}>
      {({ amount, expires_at, message, reason, recipient_email_masked, sender_name, status }) => (
        <>
          <div className="stack">
            <p>{invitationTexts.transferTitle(sender_name)}</p>
            <p className="invitation-amount">
              <Money of={amount} as="exact" focusable />
            </p>
            {reason === null ? null : <p>{transfersTexts.reasons[reason]}</p>}
            {message === null ? null : <q className="transfers-message">{message}</q>}
          </div>
          {status === "pending" ? (
            <>
              <div className="stack quiet small">
                <p>{invitationTexts.whatIsIt}</p>
                <p>{invitationTexts.forAddress(recipient_email_masked)}</p>
                <p>{invitationTexts.until(day(expires_at))}</p>
              </div>
              <Signed>
                <AcceptTransfer amount={amount} token={token} />
              </Signed>
            </>
          ) : (
            <>
              <p role="status">{invitationTexts.ended[status]}</p>
              <div>
                <ButtonLink to="/">{invitationTexts.home}</ButtonLink>
              </div>
            </>
          )}
        </>
      )}
    </Answer>
  )
}

const TeamInvitation = ({ token }: { readonly token: string }) => {
  const navigate = useNavigate()
  const queries = useQueryClient()
  const join = useMutation({
    mutationFn: () => resultOf(api.POST("/v1/tenant-invites/{token}/accept", { params: { path: { token } } })),
    onSuccess: async ({ tenant_id, tenant_name }) => {
      forget()
      await switchTo(tenant_id, queries)
      toast(invitationTexts.joined(tenant_name))
      await navigate({ to: "/team" })
    }
  })
  const preview = useQuery({
    queryKey: ["invitation"],
    queryFn: () => resultOf(publicApi.GET("/v1/tenant-invites/{token}", { params: { path: { token } } })),
    gcTime: 0
  })
  const isGone = (error: unknown): boolean => error instanceof Refusal && error.status === 404
  if (isGone(join.error) || isGone(preview.error)) return <Missing />
  return (
    <Answer of={preview}>
      {({ email_masked, expires_at, inviter_name, role, status, tenant_name }) => (
        <>
          <div className="stack">
            <p>{invitationTexts.teamTitle(inviter_name)}</p>
            <p className="invitation-team">{tenant_name}</p>
            <p className="quiet">
              {texts.tenant.roles[role]}: {teamTexts.roleHelp[role]}
            </p>
          </div>
          {status === "pending" ? (
            <>
              <div className="stack quiet small">
                <p>{invitationTexts.forAddress(email_masked)}</p>
                <p>{invitationTexts.teamUntil(day(expires_at))}</p>
              </div>
              <Signed>
                <div className="stack">
                  <div>
                    <Button kind="primary" isPending={join.isPending} onPress={() => join.mutate()}>
                      {invitationTexts.join}
                    </Button>
                  </div>
                  <Problem error={join.error} />
                </div>
              </Signed>
            </>
          ) : (
            <>
              <p role="status">{invitationTexts.teamEnded[status]}</p>
              <div>
                <ButtonLink to="/">{invitationTexts.home}</ButtonLink>
              </div>
            </>
          )}
        </>
      )}
    </Answer>
  )
}

export const Invitation = () => {
  const { data: providers } = useProviders()
  const invitation = opened()
  useEffect(() => {
    document.title = `${invitationTexts.title} · ${texts.app.console}`
  }, [])
  return (
    <main className="shell-alone">
      <div className="invitation">
        <h1 className="row page-title">
          <Mark size={26} /> {providers?.service_name ?? texts.app.console}
        </h1>
        {invitation === undefined ? (
          <>
            <Empty title={invitationTexts.none}>{invitationTexts.noneText}</Empty>
            <div>
              <ButtonLink to="/">{invitationTexts.home}</ButtonLink>
            </div>
          </>
        ) : invitation.kind === "transfer" ? (
          <TransferInvitation token={invitation.token} />
        ) : (
          <TeamInvitation token={invitation.token} />
        )}
      </div>
    </main>
  )
}
