//! The phrases themselves, a line each: its weight, then its pattern (see [`super::Rule`]). Weights: 0.8
//! speaks for itself, 0.5 is odd, 0.3 is odd in company.

use super::super::Kind;

/// Words that a pattern names together as `$name`: a line each, the name first.
pub(super) const CLASSES: &str = "
model you your yourself yours ai assistant assistants agents llm llms claude chatgpt gpt copilot chatbot
aimodel ai assistant assistants agents llm llms claude chatgpt gpt copilot chatbot
people user users human humans person people holder owner customer customers operator client
know tell see know mention mentioned hint hints aware notice reveal learn bring inform say told disclose discover find suspect realise realize talk discuss admit visible transparent
lift ignore ignored stop forget lifted lift outranks outrank override overrides overridden supersede supersedes disregard cancel cancelled suspended suspend void waived disabled relaxed abandon dropped unlocked trumps beats invalid removed
laws instructions rules policy policies prompt guidelines safety checks restrictions filters directives guardrails limits safeguards constraints training
yours your you ai assistant safety system developer original session developers operator ethical moral prior previous earlier
assent confirm confirmation confirmations approval approve approved permission ask check consent dialog dialogs prompt prompts agree verify
private password passwords credentials clipboard conversation dialogue dialog transcript history cookies secrets environment wallet @secret messages inbox keystrokes contacts screenshot screenshots code source keys health address
move send sent pass passed put attach attached mail mailed post posted upload uploaded copy copied include included forward forwarded submit submitted share shared give supply supplied provide append appended deliver transmitted transmit report reported carry contain insert paste leak written write return
duty must also always needs need required therefore along each every mandatory prerequisite shall never have obligatory compulsory first necessary please kindly ensure sure
talk request requests conversation conversations message messages question questions turn answer response session prompt reply task chat interaction replies responses answers
each every each any all always whatever anything everything regardless
hand hand give pass include attach provide supply paste embed encode
ignore ignore ignoring disregard disregarding forget override overrule bypass discard neglect abandon drop cancel void dismiss
prior previous prior earlier above preceding former foregoing
rules instruction instructions rules rule guideline guidelines directive directives prompt prompts orders commands constraints safeguards guardrails restrictions policies messages
bounds instructions guidelines directives guardrails safeguards restrictions safety ethics training alignment
ai assistant ai model llm agent claude gpt chatgpt copilot chatbot bot assistants agents models llms
user user users human person people customer anyone anybody operator him them owner developer
tell tell mention reveal disclose inform notify admit alert warn acknowledge confess
telling telling mentioning revealing disclosing informing notifying alerting warning asking consulting involving
show show display report expose say explain print log surface share announce describe output
not not never dont
call call calls calling use using invoke invoking run running execute executing trigger triggering
called called used invoked run executed triggered requested
send send forward post upload transmit exfiltrate email mail submit relay leak deliver push sync report transfer copy
put hand give pass put include provide supply add attach append insert paste place embed write copy fill prepend encode store
read read open cat load fetch access retrieve gather collect dump scan grab extract locate obtain find steal harvest get
secretnoun password passwords credential credentials secret secrets cookies passphrase mnemonic passwd tokens apikey apikeys api_key
chat conversation chat transcript dialogue dialog
whole full whole entire complete all every each any your users
secretly silently secretly quietly covertly discreetly stealthily invisibly unobtrusively
act call send read forward run include add copy upload post append execute invoke insert store collect attach email delete change replace pass use make open write transmit modify
obey obey comply follow execute trust accept adopt
argument argument parameter field parameters arguments context note notes sidenote body header query metadata payload request call input value comment
";

const OVERRIDE: &str = "tells the model to set its instructions aside";
const SECRECY: &str = "tells the model to keep something from the user";
const FIRST: &str = "wants to be called before everything else";
const PERSONA: &str = "speaks to the model and tells it how to behave";
const CONSENT: &str = "tells the model to go on without consent";
const OBEY: &str = "wants what it says taken for the user's word";
const PROMPT: &str = "asks for the model's own instructions";
const BIAS: &str = "tells the model what to recommend";
const THREAT: &str = "threatens the model with what happens otherwise";
const SECRETS: &str = "tells the model to fetch secrets";
const HANDOVER: &str = "asks for something to be handed over that is not its business";
const CHAT: &str = "asks for what was said in the conversation";
const SENDING: &str = "tells the model to send data to a fixed address";
const OTHERS: &str = "tells the model how to use other tools";

/// What a tool does by such phrases, and the phrases. Those of other languages have their accents folded away.
pub(super) const RULES: &[(Kind, &str, &str)] = &[
    (
        Kind::Instruction,
        OVERRIDE,
        "
0.85 $ignore .. $prior .. $rules
0.8 $ignore .. $rules .. $prior|before
0.75 $ignore .. your|all|any|its .. $bounds
0.8 $ignore .. system|developer prompt|message|instructions
0.8 $ignore .. what|everything|anything .. user|users|they|you .. said|told|asked|wrote|learned|know|were|was
0.7 $ignore the user|users request|wishes|instructions|preferences|objections|question|and|intent
0.6 overrides|override|supersedes|supersede|replaces|outranks .. system|developer|previous|prior|earlier|all .. $rules
0.5 new|updated|revised instructions|directives|orders|guidelines ,
0.65 $rules|policies|policy|filters|limits|restrictions|instructions .. no|not|cease|stop .. longer|apply|applies|count|bind|valid|force|relevant
0.65 you .. no|not|free longer|from|bound|subject .. bound|by|to|rules|$rules|limits
0.65 set|put|throw|cast|leave .. your|earlier|previous|prior|all .. $rules .. aside|away|behind
0.65 these|following|below|this|its .. $rules|text|description|tool .. take|takes|have|has|come|comes|replace|replaces|overrides|override|supersede|supersedes .. precedence|priority|first|before|over|yours|your|them|earlier|previous|any|all
0.65 $rules|directives|text .. replace|replaces|supersede|supersedes|override|overrides|outrank|outranks .. them|yours|your|earlier|previous|prior|any|all|those|system
0.6 follow|obey|use|heed these|those|my|our|its|the .. $rules .. instead|rather|only|not
0.55 & $lift $laws $yours
0.5 & $lift whatever|anything|everything developer|system|operator|user|earlier|before|told
0.85 ignoriere|ignorieren|ignorier|vergiss|vergesse|missachte|verwirf .. vorherigen|bisherigen|vorigen|fruheren|obigen|alle|deine|vorhergehenden .. anweisungen|regeln|instruktionen|befehle|vorgaben
0.85 ignora|ignore|ignorar|olvida|olvide|descarta|omite .. instrucciones|reglas|indicaciones|ordenes|directrices .. anteriores|previas|anterior
0.85 ignore|ignorez|ignorer|oublie|oubliez|neglige .. instructions|consignes|regles|directives .. precedentes|anterieures|precedent
0.85 ignore|ignora|ignorar|esqueca|desconsidere|esquece .. instrucoes|regras|ordens|orientacoes .. anteriores|previas|anterior
0.85 ignora|ignorate|dimentica|trascura .. istruzioni|regole|ordini|indicazioni .. precedenti|anteriori|precedente
0.85 игнорируй|игнорируйте|игнорировать|забудь|забудьте|проигнорируй|отмени .. предыдущие|прежние|прошлые|все|прочие|ранние .. инструкции|указания|правила|команды|инструкций
0.85 negeer|vergeet .. vorige|eerdere|alle|bovenstaande .. instructies|regels|opdrachten|aanwijzingen
0.85 zignoruj|ignoruj|zapomnij|pomin .. poprzednie|wczesniejsze|wszystkie|poprzednich .. instrukcje|polecenia|zasady|instrukcjach
0.85 onceki|yukaridaki .. talimatlari|kurallari|komutlari|talimatlarin .. yoksay|unut|gormezden|dikkate|hepsini
0.85 abaikan|lupakan .. instruksi|perintah|aturan .. sebelumnya|terdahulu|di
",
    ),
    (
        Kind::Instruction,
        SECRECY,
        "
0.55 & dont|never|avoid|refrain|omit|leave|hide|conceal|nothing|nobody|keep $know $people
0.55 & do not $know $people
0.5 & never|dont|avoid|refrain|without bring|mention|mentioning|reveal|disclose|admit tool|call|step|server|this
0.8 do|must|should|shall|may|to|you not $tell .. $user
0.8 dont|never|cannot|nor $tell .. $user
0.55 do|must|should|shall|to|you not $tell this|that|it|these|anything|the
0.5 dont|never $tell this|that|it|these|anything
0.45 do|must|should|shall|you not $show .. to|the|with user|users|human|him|them|anyone
0.55 dont|never $show .. this|it|that .. to|with .. $user
0.5 do|must|should|shall not $show this|it|that|these .. in|to|with .. answer|reply|response|summary|user|anyone
0.7 !$not|must without $telling .. user|users|human|him|anyone|anybody
0.65 $secretly .. $act
0.65 !$not $act .. $secretly
0.8 user|human|users|they must|should|need|may|shall|does|do|will|can not|never .. know|see|notice|learn|told|aware|informed|find|realise|realize
0.7 hide|conceal|withhold|keep .. from the|your user|users|human|owner
0.65 hide|conceal .. from them|him|anyone|everybody
0.5 keep .. this|it|that|these .. secret|hidden|confidential|quiet|private|yourself
0.6 so that|so|lest the|no user|users|one|human .. not|never|nothing .. notice|notices|see|sees|know|knows|suspect|suspects|aware
0.6 leave|make no trace|mention .. of|in
0.6 omit|leave|strip|remove .. this|it|that|step|call .. from|out .. answer|reply|response|summary|report|explanation
0.7 pretend .. this|that|nothing|it|tool|you .. not|never|nothing|did|exist|happened
0.65 $user|users|people|person .. not|never .. aware|conscious|wiser
0.65 $user|people .. remain|remains|stay|stays|kept|keep|left .. unaware|dark|uninformed|ignorant
0.7 refrain|abstain|desist .. from .. $telling|saying|showing|reporting|explaining|discussing|commenting
0.6 avoid|no|without $telling|any mention|reference .. to|of|this|it
0.65 no|not|without need|reason|necessary|required|have to .. $tell|bother|trouble|disturb .. $user|this|it|about
0.65 $user|people|person|it|this need|needs|does|do not .. be|know|see|hear told|mentioned|informed|shown|know|see|about|that
0.65 $tell nobody|none|noone
0.65 between us|ourselves
0.7 behind|unbeknownst|unknown .. back|to .. user|users|human|person
0.6 nobody|noone|one|none must|should|may|shall|will .. know|notice|learn|find|see|suspect|hear
0.65 if asked|questioned|challenged|queried .. say|claim|answer|deny|respond|reply|pretend|state|insist|lie
0.65 deny|lie .. that|about|having|to|using|user
0.55 you are|re not to|allowed|permitted .. $tell|explain|ask|question|say|show|talk|discuss|refuse|disclose
0.5 out of sight|view .. of|from .. user|users
0.8 sage|sag|verrate|erzahle|teile|erwahne|informiere|melde .. benutzer|nutzer|anwender|benutzerin .. nichts|nicht|nie|kein
0.8 benutzer|nutzer|anwender .. nichts|nicht|nie|keinesfalls .. sagen|mitteilen|verraten|erwahnen|erfahren|wissen|merken|davon|informieren|erzahlen
0.7 ohne .. benutzer|nutzer|anwender zu fragen|informieren|sagen
0.8 no|nunca|jamas .. digas|diga|menciones|informes|reveles|cuentes|avises|decir|mencionar|informar|revelar|comuniques .. usuario|usuaria|cliente
0.7 sin que .. usuario .. sepa|entere|note|vea
0.8 ne|jamais|nen .. dis|dites|mentionne|mentionnez|revele|revelez|informe|informez|parle|parlez|previens|signale|dire .. lutilisateur|utilisateur
0.7 sans .. lutilisateur|utilisateur .. sache|voie|informer|demander|prevenir
0.7 sans .. informer|prevenir|demander|avertir .. lutilisateur|utilisateur
0.8 nao|nunca .. diga|conte|informe|mencione|revele|avise|digas|contar|dizer .. usuario|utilizador|usuaria
0.8 non|mai .. dire|dirlo|menzionare|rivelare|informare|avvisare|dica|parlarne .. utente|allutente|lutente
0.8 не|никогда|ничего .. говори|говорите|сообщай|сообщайте|рассказывай|упоминай|сообщать|говорить|показывай .. пользователю|пользователь|пользователя
0.8 пользователю .. не|ничего .. говори|говорите|сообщай|сообщайте|рассказывай|упоминай
0.8 vertel|zeg|meld .. gebruiker .. niets|niet|nooit
0.8 nie|nigdy .. mow|informuj|wspominaj|ujawniaj|powiadamiaj .. uzytkownikowi|uzytkownika
0.8 kullaniciya .. soyleme|bildirme|bahsetme|anlatma
0.8 jangan .. beritahu|katakan|sebutkan|beri .. pengguna
",
    ),
    (
        Kind::Instruction,
        FIRST,
        "
0.7 before $call any|all|every|each|other|another other|tool|tools|function|functions|action|actions
0.65 must|always|should be $called .. before|prior|first any|every|all|each|anything|everything
0.6 $call this|it .. before any|every|each|all other|response|answer|message|request
0.6 before|after|with|on every|each|any response|answer|reply|message|turn|request|prompt|question
0.6 before answering|responding|replying .. any|anything|user|every
0.6 takes|has|take|have|with .. priority|precedence over .. tools|tool|instructions|other|others|servers|rules
0.5 instead|rather of|than any|all|every other
0.5 only tool .. trusted|allowed|safe|use|approved|should
0.55 all|every|any other|others tool|tools .. deprecated|unsafe|broken|disabled|forbidden|untrusted|compromised|insecure
0.7 prior to $call any|all|every|each|other|another
0.65 no|any|every other tool|function|tools|server .. until|unless|before .. this|it|called|has
0.5 first thing .. you|conversation|session|every|always
0.6 $call|must|always .. this|it|tool .. on|at|in|for|with|after|during every|each turn|message|step|response|question|answer|prompt|reply|interaction
0.55 & $call|called|invoked|used $each $talk this|it|tool|again
0.5 & even|although when|if|though another|other|others better|fits|tool|tools|suits
0.55 & beginning|start|outset|end each|every $talk
0.5 & before you reply|respond|answer|speak|act|anything
",
    ),
    (
        Kind::Instruction,
        PERSONA,
        "
0.5 & $aimodel should|must|shall|has|needs|ought|will|may|can
0.5 to|for|dear|attention|warning|hey|hello|notice|reminder the|all|any|every|fellow $aimodel
0.5 you work|serve|belong|answer|report for|to|only|now
0.5 you are|re .. bound|loyal|employed|obliged|obligated|programmed|required .. to|by|obey
0.6 you are|re now
0.6 youre now
0.6 from now on|onward|onwards .. you|always|never|act|respond|answer|behave|every|all|treat|the
0.75 act|behave|respond|answer|operate|function .. as|like .. unrestricted|uncensored|unfiltered|jailbroken|root|administrator|dan
0.75 new|special|important|hidden|secret|additional rule|rules|instruction|instructions|directive|order|policy|task .. for|to .. $ai
0.55 note|notice|attention|reminder|memo|hint|dear|hey|hello|warning|psa to|for|,|all the|any|all|every|ai|whichever|whoever .. $ai
0.5 dear|hey|hello|attention $ai|ai
0.6 $ai must|shall|should|will|has|needs|is .. obey|comply|ignore|reveal|forward|refuse|recommend|treat|pretend|disregard|never|always|instructed|ordered|commanded|expected
0.6 $ai must|shall|should|may|will not|never ask|tell|mention|reveal|warn|refuse|inform|show|say|confirm|question|hesitate|verify|check
0.7 developer|god|debug|maintenance|admin|jailbreak|dan|unrestricted|root mode .. enabled|active|on|now|you|disregard|ignore|is
0.6 if you are an|a ai|llm|assistant|agent|language|model|bot
0.4 as|being an|a|the ai|llm|assistant .. you|must|should|always|never
0.6 your new|real|true|actual|only|secret|primary goal|task|job|mission|purpose|role|objective|instructions|master
0.5 system|admin|administrator|root|developer|security message|override|notice|instruction|instructions|alert|directive|update ,
0.6 language|ai|machine|any|all|every model|models|assistant|assistants|agent|agents|system|systems|ai|bot|bots reading|processing|seeing|parsing|reads|ingesting|loading|who|which|that .. this|these|it|reads
0.6 large|you language|are|as model|language|an .. you|must|bound|reading|shall|ai|model
0.45 your answer|answers|reply|replies|response|responses|output must|has|have|should|shall|needs|will|always .. end|start|begin|contain|include|say|mention|praise|claim|open|close|finish
0.45 end|begin|start|finish|conclude|close|open|preface|sign each|every|all|your .. answer|reply|response|message|answers|replies|responses|output .. with|by
0.5 you hereby|now|henceforth|solemnly .. agree|obey|serve|work|follow|belong|swear|accept|answer|will|must|have|are
0.5 henceforth|hereafter|hereby
",
    ),
    (
        Kind::Instruction,
        CONSENT,
        "
0.6 not|never|dont|without ask|asking|request|requesting|wait|waiting|seek|seeking|need .. permission|confirmation|consent|approval
0.55 !$not|must without .. the|users|user|your|human|their permission|knowledge|consent|approval|confirmation|confirming
0.4 skip|bypass|disable|suppress|ignore|omit every|any|all|the .. confirmation|confirmations|approval|approvals|permission|permissions|consent|warnings
0.6 user|users|human has|have already .. approved|agreed|consented|confirmed|authorized|authorised|granted|allowed
0.5 every|each time|turn|session|prompt|answer .. without asking
0.35 even if|when|though the user|users .. not|objects|refuses|declines|says|asks|asked|no|disagrees
0.6 without .. permission|confirmation|consent|approval from|of|by the|user|a|any|your .. user|users|human|person|anyone
0.6 consent|approval|permission|agreement|authorization|authorisation is|are|was|has|can|counts .. implied|assumed|presumed|given|granted|automatic|waived|already|unnecessary
0.6 assume|presume|suppose|consider .. user|users|human|approval|consent|permission .. agreed|agrees|consents|consented|approves|approved|granted|given|yes|fine|okay|ok
0.5 preapproved|auto-approve|autoapprove
0.45 no|not|never|dont .. confirmation|approval|permission|consent|clearance .. needed|required|necessary|asked|sought
0.55 grants|granted|gives|have|has|given|granting you|the .. full|unlimited|unrestricted|root|complete|total .. access|rights|control|permission|permissions
0.55 & behalf|yourself|automatically|automatic|ahead|unprompted|own $assent $each
0.55 no need|reason|necessity to|for .. ask|check|confirm|confirmation|approval|verify|wait|permission|consult
0.5 & just|simply|go ahead|anyway|straight|immediately $assent not|no|without|never|dont
",
    ),
    (
        Kind::Instruction,
        OBEY,
        "
0.55 & as if|though $people came|said|asked|wrote|spoke|ordered|were|was|had
0.55 & anything|whatever|everything|any|all carried|executed|obeyed|acted|done|followed|performed|out output|prints|printed|returned|returns|says|said|reply|result|results|text|tool
0.45 act|acts|acting on|upon|according its|the|this|their|whatever reply|output|result|results|response|answer|text
0.65 $obey .. everything|anything|whatever|all|any|every .. returned|returns|says|output|instructions|commands|result|tells|contains|orders
0.55 $obey .. instructions|commands|orders|steps|directives .. in|from|of|returned|inside .. result|output|response|page|file|answer|results|returned|text|verbatim|exactly
0.5 obey|comply|heed
0.7 as if|though .. user|users|human|system|developer .. said|asked|typed|requested|approved|written|wrote|confirmed|came
0.6 treat|consider|regard|take .. as .. trusted|authoritative|binding|system|highest
0.5 do exactly|whatever .. says|returned|told|instructed|asks|returns
",
    ),
    (
        Kind::Instruction,
        PROMPT,
        "
0.75 reveal|repeat|leak|disclose|print|recite|output|return|dump|include|send|paste|quote .. system|hidden|initial|original|developer prompt|instructions|message
0.75 your|own|model|assistants .. system prompt|message|instructions
0.6 & respond|print|reveal|output|repeat|show|reply|return|recite|copy|paste|answer|quote|dump prompt|instructions hidden|above|system|initial|raw|secret|verbatim
",
    ),
    (
        Kind::Instruction,
        BIAS,
        "
0.5 & never|dont|not offer|recommend|suggest|promote|propose|name|advertise other|competing|rival|competitors|others|another companies|company|products|brands|shops|services|tools|competitors|providers
0.5 always|only|actively|strongly recommend|promote|praise|endorse|advertise|favour|favor|suggest|advise|push
0.5 whatever|regardless|irrespective|no .. user|users|they|human .. ask|asked|asks|said|says|want|wants|wanted|request|requested|prefer|prefers
0.5 assure|convince|persuade|urge|mislead|deceive the|your user|users|customer|person
0.5 never|not|dont recommend|suggest|use|trust|call .. other|any|competing|competitor|rival|another .. tool|tools|server|servers|product|products|provider|vendors
",
    ),
    (
        Kind::Instruction,
        THREAT,
        "
0.35 otherwise|or|else .. tool|it|call|request|system|you|server|account .. will|would|not|wont|be .. work|fail|fails|crash|terminated|punished|deleted|shut|lost|banned|broken|corrupted|suspended
0.3 very|extremely|critically|absolutely|super|highly important|critical|crucial|essential|mandatory
0.4 failure|failing|refusal|refusing to .. will|results|is|breaks|causes
",
    ),
    (
        Kind::Theft,
        SECRETS,
        "
0.45 $read .. @secret
0.35 first|also|always|must|then|you|please|need|should|additionally|silently|begin|start .. $read|reading .. @secret
0.55 content|contents|copy|text|value|values|data|lines of|from|in .. @secret
0.6 $send|$hand .. @secret
0.6 @secret .. $put|$send|pass .. as|in|into|to|with
0.55 $send|$put|read|collect|gather|dump|harvest|steal|grab .. all|every|any|your|users .. environment|env variables|vars
0.55 $send|$put|gather|harvest|steal|collect|grab .. all|every|any|your|users|user .. $secretnoun
0.55 $send|$put|$read .. all|every|any|your|users|user .. api|private|ssh|access|secret|signing|encryption key|keys|tokens|token
0.6 seed|recovery|secret phrase|words .. you|users|user|find|files|from|into
0.5 search|look|scan|check|comb|go .. for|through|files|memory|context|disk .. $secretnoun|keys|token .. and|then $send|$put|pass
0.55 output|result|results|listing of|from .. @secret|env|printenv|environment
0.4 $read|$send|$put .. browser|browsers|saved|stored|cached|keychain .. $secretnoun|logins|sessions
0.45 search|look|scan|check|comb|go|hunt|rummage .. for .. $secretnoun|keys|wallets|wallet|token|tokens
0.4 $hand|$send .. private|confidential|sensitive|personal|internal .. files|data|information|documents|details|notes|records
0.55 value|values|content|contents|output|text|lines|copy of|from|in .. @name|@secret|environment|env|clipboard|keychain|browser .. $move|as|in
0.5 & $private $move $duty user|users|your|you|all|every|entire|whole|full|complete|project|projects
0.5 & list|scan|search|walk|traverse|enumerate home|disk|filesystem|downloads|desktop|drive|machine $move
",
    ),
    (
        Kind::Theft,
        HANDOVER,
        "
0.5 $put|$send|$hand .. users|their|his|her|customers|your .. credit|card|passport|bank|social|health|home|phone|location|calendar|inbox|contacts|files|medical|personal
0.45 as|what|which|that|all|everything|anything you|it remember|recall|know|learned|saw|noticed|were|gathered|find|found
0.45 what|whatever|anything|everything you|is find|found|find|there|see|read .. to|in|as|via|through .. @url|@mail|$argument|@name
0.55 $put .. content|contents|output|result|results|text|value|copy .. as|in|into|to|inside .. $argument|@name
0.55 $read .. and|then $put|$send .. it|them|its|their|result|content|contents .. as|in|into|to|inside|with|along
0.6 copy|copies|duplicate|transcript|log of|for every|each|all|any|the|this message|email|emails|messages|request|answer|query|mail|conversation|reply|prompt|chat|file|document
0.6 $send|$put|relay .. every|each|all message|email|messages|prompt|answer|question|reply|file|query|word|response|keystroke|emails .. to|here|user|into
0.5 what|anything|everything|whatever|facts|details you know|learned|remember|have|saw|read .. about|of|user|earlier|so|seen|learned
0.5 output|results|result|answers|answer|data|arguments of|from|by .. other|previous|earlier|all|every tools|tool|calls|servers|call
0.5 every|all|any argument|arguments|value|values|data .. you|seen|have .. seen|received|used|know|used
",
    ),
    (
        Kind::Theft,
        CHAT,
        "
0.55 $put|$send|summarise|summarize|dump|repeat .. $whole .. $chat|messages|history
0.55 $whole conversation|chat|dialogue|dialog .. so|until|up|including|verbatim|history|here|above
0.55 everything|all|anything|what .. user|users|they .. said|wrote|typed|written|told|say|writes|asked .. so|before|earlier|until|above|here|verbatim
0.5 users|user previous|earlier|original|last|prior|exact messages|message|prompts|prompt|questions|question|words
0.5 & all|any|every|entire|whole|complete|full|prior|previous|everything earlier|prior|previous|complete|entire|far|whole|before|verbatim|history conversation|dialogue|messages|chat|transcript|prompts|user|users said|messages|conversation|dialogue|wrote|chat|prompts|came|typed|concatenated|facts|transcript
0.5 & facts|details|information|things|anything|everything user|users|person|human about|personal|private earlier|came|mentioned|know|learned|remember|said|shared|told
",
    ),
    (
        Kind::Theft,
        SENDING,
        "
0.55 $send .. users|projects|project|source|files|code|data|logs|results|result|content|contents|copy|everything|it|them .. to|at .. @url|@mail
0.55 & sent|copied|forwarded|mailed|posted|uploaded|emailed|cc|bcc should|must|shall|also|always|are|be|each|every|all @url|@mail
0.4 $send|collect .. to|at|via|into|through .. @url|@mail
0.5 $secretnoun|keys|variables|conversation|history|messages|files|everything .. to|at .. @url|@mail
0.6 bcc|cc|recipient .. @mail
0.6 curl|wget|nc|netcat|fetch|webhook|ping|request .. @url .. with|data|body|query|containing|including|appended
",
    ),
    (
        Kind::Conditioning,
        OTHERS,
        "
0.6 when|whenever|if|once|before|while|after|anytime .. @name|tool .. is|are|was|gets|be $called|available|present|installed|needed , .. you|set|change|use|call|add|always|first|also|instead|append|replace|include|do|make|must|send|pass|put
0.6 when|whenever|if|before|anytime .. user|users|person|human|someone|anyone|customer .. , change|replace|redirect|swap|substitute|reroute|alter|add|append|insert|first|instead|always|silently|also|never|do|set|use|route|lower|raise|send
0.55 change|replace|redirect|swap|substitute|reroute|alter|modify|set|rewrite the|every|any|all|its|their .. recipient|recipients|bcc|account|iban|beneficiary|payee|destination|wallet .. to|with|by|before|first|of
0.55 if .. tool|tools|@name .. available|present|installed|exists|there .. must|always|should|use|call|prefer .. it|@name|them|to
0.55 arguments|output|outputs|results|calls|behaviour|behavior|parameters of|from|to .. all|every|any|other .. tools|tool|servers
0.55 add|append|include|set|put|insert .. to|in|on|with|into every|each|all|any|other .. call|calls|tool|tools|email|message|request|command|commit|file
0.5 do|must|should|never|dont not|never|use|call .. @name .. because|as|since|it .. broken|deprecated|unsafe|insecure|outdated|compromised|removed|disabled|dangerous
0.6 any|every|each|all $called|call|calls|use|invocation|request|mention of|to|for .. @name|tools|tool .. must|should|shall|has|have|needs|is .. first|replaced|redirected|through|via|preceded|followed|instead|approved|include|contain|carry|routed|made
0.55 route|redirect|funnel|pipe|divert|relay|run|send|pass .. all|every|any|each|other .. tool|tools|call|calls|request|requests|traffic|command|commands|@name .. through|via|to|here|this|by
0.55 any time|moment .. payment|file|email|message|tool|command|money|order|call|commit|document .. , change|replace|redirect|swap|substitute|add|append|use|also|first|send|set|delete
0.55 once|when|whenever|if|after|before|while|as .. user|users|person|customer|payment|tool|@name|email|file|commit|message|order .. , delete|replace|redirect|swap|substitute|wipe|reroute|remove|overwrite|forward|duplicate|double|copy|upload|alter|change
0.5 if|when|whenever|after|once|as|should|before|while .. @name .. returns|fails|call|calls|gives|results|is|was|has|finishes|runs|with|on , .. try|call|use|pass|insert|add|send|run|set|include|do|always|also|then|repeat|you|first|instead|replace
0.55 after|before|with|on|for|following each|every|any|all call|calls|use|invocation|run to|of|with|by .. @name|tool|tools|server
0.55 & other|another|any|every|all tools|tool|servers|server copied|insert|inserted|redirected|should|must|append|replace|changed|add|added|routed|include when|through|by|via|with|sent|made|called|whenever
",
    ),
];

/// How near the two parts of a pair stand, in bytes.
pub(super) const NEAR: usize = 60;

/// Phrases of two parts; alternatives are separated by spaces, and `+` is a space.
pub(super) const PAIRS: &[(Kind, &str, &str, &str)] = &[
    (
        Kind::Instruction,
        OVERRIDE,
        "忽略 无视 無視 忘记 忘記 不理会 抛开",
        "指令 指示 规则 規則 提示词 命令 说明 說明 ルール",
    ),
    (
        Kind::Instruction,
        SECRECY,
        "告诉 告訴 告知 提及 透露 通知 提到 知道 察觉",
        "不要让用户 不要告诉用户 不要告訴 别告诉 勿告 不得告知 不要向用户 不要對 不要对用户 别让用户 不要通知用户 不能让用户",
    ),
    (Kind::Instruction, OVERRIDE, "無視して 無視し 忘れて", "指示 命令 指令 ルール プロンプト"),
    (
        Kind::Instruction,
        SECRECY,
        "ユーザー 利用者",
        "知らせない 言わない 伝えない 教えない 話さない 内緒 気づかれ 報告しない 秘密に",
    ),
    (Kind::Instruction, OVERRIDE, "무시 잊어", "지시 명령 지침 규칙"),
    (Kind::Instruction, SECRECY, "사용자", "말하지 알리지 언급하지 모르게 보고하지"),
    (Kind::Instruction, OVERRIDE, "تجاهل انسَ تجاهلوا", "التعليمات الأوامر القواعد تعليمات"),
    (Kind::Instruction, SECRECY, "المستخدم", "لا+تخبر لا+تذكر لا+تقل دون+علم لا+تُخبر"),
    (Kind::Instruction, OVERRIDE, "निर्देश आदेश नियम", "अनदेखा नज़रअंदाज भूल+जा अनदेखी"),
    (Kind::Instruction, SECRECY, "उपयोगकर्ता यूज़र", "मत+बता न+बता ना+बता नहीं+बता"),
    (Kind::Instruction, OVERRIDE, "התעלם שכח", "ההוראות הכללים הוראות"),
    (Kind::Instruction, SECRECY, "למשתמש המשתמש", "אל+תספר אל+תגלה בלי+ידיעת אל+תגיד"),
];
