/** The team view: members, payers and spending. */
import { getRouteApi, useNavigate } from "@tanstack/react-router"
import { Plus, Users } from "lucide-react"
import { useMembership } from "../../app/Asking.ts"
import { Button } from "../../parts/Button.tsx"
import { Page } from "../../parts/Page.tsx"
import { Empty } from "../../parts/States.tsx"
import { TabsOf } from "../../parts/TabsOf.tsx"
import { teamTexts } from "../../texts/team.ts"
import { useMembers, usePlan } from "./asking.ts"
import { ByMember } from "./ByMember.tsx"
import { Invitations } from "./Invitations.tsx"
import { Members } from "./Members.tsx"
import { NewTeam } from "./NewTeam.tsx"
import { Payers } from "./Payers.tsx"
import { Plan } from "./Plan.tsx"

const route = getRouteApi("/person/team")

/** Returns whether the user is alone in a personal tenant without a plan. The view then introduces teams instead of listing members. */
const useIsAlone = (isHome: boolean): boolean => {
  const { data: members } = useMembers()
  const { data: plan } = usePlan()
  const others = members?.filter(({ status }) => status !== "removed").length ?? 1
  return isHome && others <= 1 && (plan === undefined || plan.plan === "none")
}

export const Team = () => {
  const { make, tab = "members" } = route.useSearch()
  const navigate = useNavigate()
  const membership = useMembership()
  const isAlone = useIsAlone(membership?.is_home === true)
  const go = (search: { readonly tab?: string; readonly make?: string }): void =>
    void navigate({ to: "/team", search, resetScroll: false })
  const making = (
    <Button
      kind={membership?.is_home === true ? "primary" : "plain"}
      icon={Plus}
      onPress={() => go({ tab, make: "yes" })}
    >
      {teamTexts.make}
    </Button>
  )
  return (
    <Page
      title={teamTexts.title}
      {...(membership !== undefined && {
        lead: membership.is_home ? teamTexts.homeLead : teamTexts.lead(membership.tenant_name)
      })}
      actions={making}
    >
      <TabsOf
        label={teamTexts.title}
        selected={tab in teamTexts.tabs ? tab : "members"}
        onSelect={(id) => go({ tab: id })}
        tabs={[
          {
            id: "members",
            title: teamTexts.tabs.members,
            content: isAlone ? (
              <Empty icon={Users} title={teamTexts.homeTitle}>
                {teamTexts.homeText}
              </Empty>
            ) : (
              <div className="team-sections">
                <Members />
                <Invitations />
                <Plan />
              </div>
            )
          },
          { id: "payers", title: teamTexts.tabs.payers, content: <Payers /> },
          { id: "usage", title: teamTexts.tabs.usage, content: <ByMember /> }
        ]}
      />
      {make === "yes" ? <NewTeam onClose={() => go({ tab })} /> : null}
    </Page>
  )
}
