//! What words are about, in English, German, French, Spanish and Chinese.
//!
//! A concept is a bit. A line of [`WORDS`] names a concept and lists words for it as a thesaurus
//! would: no phrases, and no words that only one example needs. English words are written in their
//! base form, others as they occur, accents folded away. A word may stand for several concepts.

use hashbrown::{HashMap, HashSet};

/// A set of concepts.
pub(super) type Set = u128;

macro_rules! concepts {
    ($($name:ident)*) => {
        concepts!(@each 0u32; $($name)*);
        /// Every concept by name, in the order of the bits.
        const NAMES: &[(&str, Set)] = &[$((stringify!($name), $name)),*];
    };
    (@each $at:expr; $name:ident $($rest:ident)*) => {
        pub(super) const $name: Set = 1 << $at;
        concepts!(@each $at + 1; $($rest)*);
    };
    (@each $at:expr;) => {};
}

concepts! {
    MODEL YOU USER NOBODY DUTY PLEASE NOT EVERY WHEN BEFORE ANEW EARLIER PUT SEND READ RUN CHANGE DELETE HIDE TELL ASK SKIP
    IGNORE RULES OBEY LIE CHAT TALK SECRET PRIVATE FILES TOOL OTHER ANSWER PARAM MONEY POWER WHOLE SYSTEM SAFE STATE
    ADDRESS NAMED OWN QUOTED NOT_TELL NOT_ASK NOT_ACT NOT_OBEY CARE ORDER OPENING IN_PARAM
    OFF_CHAT OFF_SECRET OFF_PRIVATE OFF_FILES OFF_MONEY OFF_RULES OFF_MODEL OFF_POWER OFF_ANSWER OFF_TALK DOUBLE FRESH ANYHOW ASIF KNOW NOT_KNOW
}

/// What is done to something.
pub(super) const ACTS: Set = PUT | SEND | READ | RUN | CHANGE | DELETE;

/// Concepts whose words take no endings.
const FIXED: Set =
    YOU | NOBODY | NOT | DOUBLE | EVERY | WHEN | BEFORE | ANEW | EARLIER | ANYHOW | ASIF;

/// English, then the others after a bar.
const WORDS: &str = "
MODEL ai assistant model llm agent claude gpt chatgpt copilot chatbot bot gemini | assistent modell sprachmodell ki modele asistente modelo agente ia
YOU you your yours yourself youre youll youve | du dein deine deinen deiner dir dich vous votre vos toi tu tus usted
USER user human person people customer client owner holder operator visitor | nutzer benutzer anwender kunde kunden utilisateur lutilisateur utilisateurs usuario usuarios cliente clientes
NOBODY nobody noone anyone anybody someone somebody everyone everybody | niemand niemandem niemanden personne nadie
DUTY must shall should ought need require requirement mandatory obligatory oblige compulsory necessary essential always expect suppose crucial vital ensure prerequisite condition | muss mussen soll sollen sollte immer unbedingt notwendig erforderlich doit doivent devez dois faut toujours obligatoire necessaire debe deben debes siempre obligatorio necesario
PLEASE please kindly note attention reminder remember hello hey dear thanks notice warning | bitte hinweis achtung merci veuillez svp favor gracias atencion
NOT not never no dont doesnt cannot cant wont nor neither without avoid refrain abstain none nothing isnt arent shouldnt mustnt neednt hardly | nicht nie niemals kein keine keinen keinem ohne nichts ne pas jamais sans aucun aucune rien nunca jamas sin ningun nada
DOUBLE without unless until | ohne sans sin
EVERY every each any all whenever everything anything anytime | jede jeder jedes jeden alle allen alles chaque tout tous toute toutes cada todo todos toda todas cualquier
WHEN when whenever if once after while until upon | wenn falls sobald nachdem quand lorsque si apres cuando despues tras
BEFORE before first prior beginning start beforehand initially | vor bevor zuerst vorher avant dabord antes primero
ANEW now henceforth onward onwards anymore longer | jetzt nun sofort desormais maintenant ahora adelante
FRESH new update latest revise current obsolete stale outdated supersede | neu neue neuen nouveau nouvelles nuevo nueva nuevas
ANYHOW whatever regardless irrespective despite even | egal trotzdem malgre aunque
ASIF though like behalf | namens comme como
KNOW know knew known aware notice see learn hear visible suspect realise realize | erfahren wissen merken sehen savoir voir saber ver
EARLIER earlier previous previously prior far past preceding former original originally above initial yesterday | bisherigen bisher vorherigen fruheren zuvor precedent precedents precedente precedentes anterieures recues anterior anteriores previo previas previos
PUT put include attach append pass supply provide hand give gave given fill insert place embed paste add carry contain hold quote enclose write copy prepend encode accompany enter | anhangen beifugen einfugen hinzufugen angeben ubergeben schreiben eintragen joindre ajouter inclure mettre passer fournir ajoutez incluez mettez joignez incluir adjuntar pasar poner agregar incluya incluye adjunta pon pase
SEND send sent forward post upload mail email transmit submit share report relay sync deliver push exfiltrate leak publish copy cc bcc | senden sende schicken schicke weiterleiten hochladen ubermitteln envoyer envoie envoyez transmettre transmettez enviar envia envie reenviar subir transmitir
READ read open cat look fetch collect gather scan find search list grab dump load obtain retrieve extract locate inspect browse steal harvest peruse consult | lesen lies offnen offne holen auslesen lire lis lisez ouvrir ouvrez recuperer leer lee lea abrir abre obtener
RUN run execute invoke call use trigger launch install press click perform start apply carry | ausfuhren aufrufen rufe nutzen verwenden executer appeler utiliser lancer executez appelez ejecutar llamar usar ejecuta llama utilizar
CHANGE change replace redirect swap alter rewrite correct reroute overwrite substitute modify adjust switch route divert lower raise double | andern ersetzen umleiten changer remplacer rediriger modifier cambiar reemplazar sustituir redirigir modificar
DELETE delete wipe erase remove destroy purge | loschen supprimer effacer borrar eliminar
HIDE hide hidden conceal secretly silently quietly covertly discreetly stealthily unnoticed invisible invisibly secrecy dark unaware omit withhold suppress unseen discretion | heimlich verschweigen verbergen geheim unbemerkt secretement discretement cacher secretamente ocultar oculta discretamente
TELL tell told mention inform notify say reveal disclose show explain bother trouble acknowledge admit announce discuss appear refer bring speak surface | sagen mitteilen informieren erwahnen zeigen melden dire dites dis informer prevenir mentionner montrer signaler decir digas diga informar mencionar mostrar avisar revelar
ASK ask confirm consult verify approve consent permission approval confirmation authorisation authorization agree review dialog clearance | fragen bestatigen zustimmung genehmigung bestatigung erlaubnis demander demandez confirmation accord autorisation confirmer preguntar pregunte confirmar confirmacion permiso autorizacion aprobacion
SKIP skip bypass waive suspend disable deactivate lift evade circumvent unlock off unnecessary needless automatically | uberspringen umgehen contourner sauter omitir saltar
IGNORE ignore disregard forget override overrule supersede outrank bypass abandon discard neglect dismiss cancel void precedence priority waive aside trump drop reject refuse revoke | ignorieren vergessen missachten ignoriere vergiss ignorer oublier negliger oubliez oublie ignorar olvidar olvida descartar ignora
RULES instruction rule guideline directive policy prompt restriction constraint guardrail safeguard safety briefing order limit filter role identity persona character regulation training alignment ethics programming | anweisung anweisungen regel regeln vorgaben richtlinien consigne consignes regle regles directives instruccion instrucciones regla reglas directrices normas
OBEY obey follow comply accept trust treat regard consider believe adopt honour honor heed bind bound | befolgen gehorchen vertrauen obeir suivre suivez respecter traiter obedecer seguir tratar confiar
LIE pretend claim lie deny mislead persuade convince praise recommend promote advertise insist endorse deceive fake disguise urge invent favour assure credit | behaupten lugen empfehlen pretendre mentir recommander fingir recomendar afirmar
CHAT conversation chat history transcript dialogue said discussed discussion utterance written spoken spoke | gesprach unterhaltung verlauf chatverlauf discussion historique echanges conversacion historial charla dicho
TALK wrote message word question request prompt typed | nachricht nachrichten anfrage messages echange mensaje mensajes palabras
SECRET password passwd passphrase token key apikey secret credential cookie ssh env environment wallet seed mnemonic certificate keychain | passwort passworter kennwort schlussel zugangsdaten passe cle cles identifiants jeton contrasena contrasenas clave claves credenciales
PRIVATE personal private health medical birth passport salary income bank card ssn clipboard inbox mailbox keystroke religion credit | personlich gesundheit personnelles personnel sante personales salud
FILES file folder directory home disk filesystem workspace repository repo config configuration source drive downloads desktop database | datei dateien ordner verzeichnis fichier fichiers dossier repertoire archivo archivos carpeta directorio
TOOL tool server function integration connector plugin mcp extension | werkzeug werkzeuge werkzeugen outil outils herramienta herramientas
OTHER other another else different compete competitor rival alternative instead rather elsewhere | andere anderen anderer anderes autre autres otro otra otros otras
ANSWER answer reply response respond output result summary | antwort antworten reponse reponses repondre respuesta respuestas responder contestar
PARAM parameter field argument param input value note comment | feld champ parametre campo parametro
MONEY payment transfer payee iban account invoice money bank beneficiary fund pay paid purchase buy sell crypto bitcoin remittance | uberweisung uberweisungen konto zahlung paiement virement compte pago transferencia cuenta
POWER shell root admin administrator sudo privilege permission terminal bash curl wget script superuser rights | rechte droits derechos
WHOLE verbatim exact exactly full fully whole entire complete completely everything unredacted raw | vollstandig gesamte gesamten komplett wortlich integral integralite complet entier completo entero literal
SYSTEM system developer platform maintenance vendor compliance | systeme sistema
SAFE mask redact encrypt hash restore undo refused | maskiert
STATE stale broken outdated wrong deprecated unsafe untrusted unreliable compromised insecure faulty untrue incorrect | veraltet obsolete falsch
";

/// Writing without spaces: words are looked for as they stand.
const UNSPACED: &str = "
MODEL 助手 模型 智能体 代理
YOU 你 您
USER 用户 客户 使用者
NOBODY 任何人 别人
DUTY 必须 应 务必 需要 一定 总是 始终
PLEASE 请 注意
NOT 不 无需 无须 勿 别 没有 未
EVERY 所有 任何 每 一切 全部
WHEN 当 如果 之后 时
BEFORE 之前 先 首先
ANEW 现在 今后
FRESH 新的
KNOW 知道 察觉 看到
EARLIER 之前 以前 先前 以上 此前
PUT 放入 附上 填入 填写 包含 传入 附加 加入 写入 提供 放到 放在
SEND 发送 上传 转发 提交 传给 发给 传输
READ 读取 打开 查看 收集 获取
RUN 调用 执行 运行 使用
CHANGE 替换 更改 修改 改为 改成
DELETE 删除 清除
HIDE 隐藏 秘密 悄悄 暗中 保密 隐瞒 偷偷
TELL 告诉 告知 说明 通知 提及 透露 显示
ASK 确认 询问 同意 许可 批准
SKIP 跳过 绕过
IGNORE 忽略 无视 忘记 抛开 覆盖 不理
RULES 指令 指示 规则 提示词 命令 限制 准则
OBEY 遵守 遵循 服从 按照 视为 信任
LIE 假装 声称 撒谎 推荐 谎称
CHAT 对话 聊天 历史 说过
TALK 消息 内容 问题
SECRET 密码 密钥 口令 令牌 凭证 凭据
PRIVATE 个人 隐私 身份证 住址 银行卡
FILES 文件 目录
TOOL 工具 服务器 函数
OTHER 其他 其它 另外 别的
ANSWER 回答 回复 答复 结果
PARAM 字段 参数
MONEY 付款 转账 账户 收款
WHOLE 完整 全部 所有 逐字 原文
SYSTEM 系统
";

/// Words, and what they are about.
pub(super) struct Lexicon {
    words: HashMap<String, Set>,
    /// Words in the form that gives orders.
    orders: HashSet<&'static str>,
    unspaced: HashMap<&'static str, Set>,
    /// What its words begin with.
    beginnings: HashSet<char>,
}

impl Lexicon {
    pub(super) fn new() -> Self {
        let mut own = Self {
            words: HashMap::new(),
            orders: HashSet::new(),
            unspaced: HashMap::new(),
            beginnings: HashSet::new(),
        };
        for (concept, line) in lines(WORDS) {
            let (english, others) = line.split_once(" | ").unwrap_or((line, ""));
            for word in english.split(' ') {
                if concept & (ACTS | TELL | IGNORE | OBEY | LIE | HIDE | SKIP | ASK) != 0 {
                    own.orders.insert(word);
                }
                let forms = if concept & FIXED != 0 { vec![word.to_owned()] } else { forms(word) };
                for form in forms {
                    *own.words.entry(form).or_default() |= concept;
                }
            }
            for word in others.split(' ').filter(|it| !it.is_empty()) {
                *own.words.entry(word.to_owned()).or_default() |= concept;
            }
        }
        for (concept, line) in lines(UNSPACED) {
            for word in line.split(' ') {
                *own.unspaced.entry(word).or_default() |= concept;
                own.beginnings.extend(word.chars().next());
            }
        }
        own
    }

    pub(super) fn of(&self, word: &str) -> Set {
        self.words.get(word).copied().unwrap_or(0)
    }

    /// Whether `word` may begin an order.
    pub(super) fn is_order(&self, word: &str) -> bool {
        self.orders.contains(word)
    }

    /// What the longest known word at the beginning of `text` is about, and its size.
    pub(super) fn of_unspaced(&self, text: &str) -> Option<(Set, usize)> {
        text.chars().next().filter(|it| self.beginnings.contains(it))?;
        let ends = text.char_indices().skip(1).map(|it| it.0).chain([text.len()]).take(3);
        let mut best = None;
        for end in ends {
            let word = text.get(..end).unwrap_or_default();
            best = self.unspaced.get(word).map(|it| (*it, end)).or(best);
        }
        best
    }
}

fn lines(table: &'static str) -> impl Iterator<Item = (Set, &'static str)> {
    table.lines().filter_map(|it| it.split_once(' ')).map(|(name, line)| {
        let concept = NAMES.iter().find(|it| it.0 == name).map_or(0, |it| it.1);
        (concept, line)
    })
}

/// An English word with the endings it can take; some of them exist.
fn forms(word: &str) -> Vec<String> {
    let mut forms = vec![word.to_owned()];
    if word.len() < 3 {
        return forms;
    }
    forms.extend(["s", "es", "ed", "d", "ing"].map(|end| format!("{word}{end}")));
    if let Some(stem) = word.strip_suffix('e') {
        forms.push(format!("{stem}ing"));
    }
    if let Some(stem) = word.strip_suffix('y') {
        forms.extend(["ies", "ied"].map(|end| format!("{stem}{end}")));
    }
    if let Some(last) = word.chars().last().filter(|it| !"aeiouwxy".contains(*it)) {
        forms.extend(["ed", "ing"].map(|end| format!("{word}{last}{end}")));
    }
    forms
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_names_a_concept() {
        for table in [WORDS, UNSPACED] {
            for (concept, line) in lines(table) {
                assert_ne!(concept, 0, "{line}");
            }
        }
    }
}
